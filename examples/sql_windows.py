"""SQL over a stream: a table with a watermark, a window aggregation, and the best shop of each window."""

from millstream.table import EnvironmentSettings, TableEnvironment

env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
env.execute_sql("""
    CREATE TABLE sales (
        n BIGINT,
        shop AS CASE n % 3 WHEN 0 THEN 'Oslo' WHEN 1 THEN 'Rome' ELSE 'Lima' END,
        cents AS n * n % 700,
        sold_at AS TO_TIMESTAMP_LTZ(n * 1000, 3),
        WATERMARK FOR sold_at AS sold_at - INTERVAL '2' SECOND
    ) WITH (
        'connector' = 'datagen', 'number-of-rows' = '180',
        'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '179'
    )
""")
env.execute_sql("""
    CREATE TEMPORARY VIEW revenue AS
    SELECT window_start, window_end, shop, SUM(cents) AS cents
    FROM TABLE(TUMBLE(TABLE sales, DESCRIPTOR(sold_at), INTERVAL '1' MINUTE))
    GROUP BY window_start, window_end, shop
""")
best = env.execute_sql("""
    SELECT window_start, shop, cents FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY cents DESC) AS place FROM revenue
    ) WHERE place = 1
""")
with best.collect() as rows:
    for start, shop, cents in rows:
        print(f"{start:%H:%M} {shop} sold most, for {cents} cents")
