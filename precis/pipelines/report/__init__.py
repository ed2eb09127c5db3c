"""`precis report`: a run as one HTML page that needs no network connection.

report         the command: reads the run, writes the page
evaluation     the evaluation of a run, or of its groups
articles       the articles, read again from the corpus
rows           which documents and groups are on the page, chosen in a database
documents      a document with its source and its summaries, as the page shows it
facts          main figures, facts, accounts and dead letters of a run
page           the template and the data in it; templates/, page.css, page.js,
               document.js
"""
