"""`precis report`: a run as one HTML page that needs no network connection.

report             the command: reads the run, writes the page
reported_run       the files of a run, its evaluation and its dead letters
columns            numbers of rows as arrays
distributions      histograms of all rows, counted batch by batch
chosen_rows        which rows are on the page
document_details   a document with its source and its summaries, as the page shows it
marked_text        texts cut into pieces where spans begin and end
compared_rows      the rows of two runs: numbers, and which texts differ
comparison         two runs: paired differences
heat_maps          what a network read, by words
training_curves    the losses of a bundle's training
charts             plots as SVG
facts              run facts, settings, tables of an evaluation
page               the template and the data in it; templates/, page.css,
                   page.js, document.js
"""
