"""`precis report`: a run as one HTML page that needs no network connection.

report         the command: reads the run, writes the page of templates/, page.css,
               page.js, document.js
articles       the articles, read again from the corpus
rows           which documents and groups are on the page, chosen in a database
documents      a document with its source and its summaries, as the page shows it
facts          evaluation, main figures, facts, accounts, dead letters of a run
"""
