-- Who sees which sources and items.

SELECT protect('source'), protect('source_item'), protect('source_raw'), protect('source_tally'), protect('mail_thread');
SELECT protect('link'), protect('link_place'), protect('link_rule');
SELECT share('item_in_hand', 'SELECT'), share('item_unreadable', 'SELECT');
