"""`precis report`: a run as one HTML page that needs no network connection.

report         the command: reads the run, writes the page
reported_run   the files of a run, its evaluation and its dead letters
articles       the articles, read again from the corpus
rows           numbers of rows as arrays, and which rows are on the page
documents      a document with its source and its summaries, as the page shows it
distributions  means and quantiles of the measures of all rows
facts          main figures, facts and accounts of a run
page           the template and the data in it; templates/, page.css, page.js,
               document.js
"""
