-- How much every caller may still ask.

-- name: take_portion
-- A bucket that fills with `rate` tokens a second up to `burst`. It may go below zero by one portion: that is paid back
-- before the next one is given.
INSERT INTO web_allowance AS a (caller, tokens) VALUES (%(caller)s, %(burst)s::int - %(portion)s::int)
ON CONFLICT (caller) DO UPDATE
   SET tokens = least(%(burst)s::int, a.tokens + extract(epoch FROM clock() - a.at) * %(rate)s::int) - %(portion)s::int, at = clock()
 WHERE a.tokens + extract(epoch FROM clock() - a.at) * %(rate)s::int >= 1
RETURNING true;
