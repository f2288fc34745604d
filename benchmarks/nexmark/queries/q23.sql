-- Expand bid with person and auction: bids of persons who also sell, with all of the person and of each auction.
CREATE TABLE nexmark_q23 (
  bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, bid_extra VARCHAR,
  person_id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR,
  person_extra VARCHAR, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT,
  auction_dateTime TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, auction_extra VARCHAR
) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q23
SELECT
  bidder, price, channel, url, B.extra,
  P.id, name, emailAddress, creditCard, city, state, P.extra,
  itemName, description, initialBid, reserve, A.`dateTime`, expires, seller, category, A.extra
FROM bid AS B
INNER JOIN person AS P ON P.id = B.bidder
INNER JOIN auction AS A ON A.seller = B.bidder;
