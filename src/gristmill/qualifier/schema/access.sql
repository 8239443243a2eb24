-- Who sees which items.

SELECT protect('item'), protect('item_source'), protect('sent_mail'), protect('item_event'), protect('item_memory'),
       protect('item_message'), protect('item_identifier'), protect('item_checkpoint'), protect('item_result'),
       protect('item_tally');
-- that somebody asked, and whether the executor takes work, is the machine's and tells nothing of a client
SELECT share('person_request', 'SELECT, INSERT, UPDATE'), share('executor_health', 'SELECT');
SELECT protect('decision'), protect('convention'), protect('convention_version'), protect('convention_tally'),
       protect('client_profile');
