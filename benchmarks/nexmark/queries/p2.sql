-- Pattern: as long as a bidder's average price in an auction stays low; a match may begin in every row.
CREATE TABLE nexmark_p2 (
  auction BIGINT, bidder BIGINT, start_tstamp TIMESTAMP(3), end_tstamp TIMESTAMP(3), avg_price BIGINT
) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_p2
SELECT auction, bidder, start_tstamp, end_tstamp, avg_price
FROM bid MATCH_RECOGNIZE (
  PARTITION BY auction, bidder
  ORDER BY `dateTime`
  MEASURES FIRST(A.`dateTime`) AS start_tstamp, LAST(A.`dateTime`) AS end_tstamp, AVG(A.price) AS avg_price
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A+ B)
  DEFINE A AS AVG(A.price) < 10000
);
