-- Who sees which records.

SELECT protect('data_import'), protect('data_records'), protect('data_change'), protect('data_rejected'),
       protect('data_tally');
SELECT share('chunk_columns', 'SELECT');
