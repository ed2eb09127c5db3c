"""`precis report`: a run as one HTML page that needs no network connection.

report         the command: reads the run, writes the page from templates/, page.css,
               page.js and document.js
articles       reads the articles again from the corpus
rows           chooses documents and groups for the page, in a database
documents      a document with its source and its summaries, as the page shows it
facts          a run's evaluation, main figures, facts, counts and dead letters
"""
