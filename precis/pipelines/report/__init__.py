"""`precis report`: a run as one HTML page that needs no network connection.

report         the command: reads the run, writes the page
reported_run   the files of a run, its evaluation and its dead letters
articles       the articles, read again from the corpus
rows           which rows are on the page, by their values in a database
groups         groups with their sentences, some of a run
documents      a document with its source and its summaries, as the page shows it
facts          main figures, facts and accounts of a run
page           the template and the data in it; templates/, page.css, page.js,
               document.js
"""
