"""From Kafka through keyed state to Kafka, exactly once: kill the job at any time, and nothing is lost.

With two arguments, SERVERS and DIRECTORY, this is the job. Without, it starts a broker and kills the job itself."""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from millstream.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from millstream.testing.kafka import KafkaBroker

PAYMENTS, PEOPLE = 20_000, ["ada", "bob", "eve"]


def count_payments(servers: str, directory: str) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "300 ms")
    configuration.set_string("execution.checkpointing.dir", directory)
    configuration.set_string("millstream.epoch.max-records", "500")  # slow, so that there is time to kill it
    if taken := sorted(Path(directory).glob("*/chk-*/_metadata"), key=lambda path: path.stat().st_mtime):
        configuration.set_string("execution.state-recovery.path", str(taken[-1].parent))
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    strings = SimpleStringSchema()
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("payments")
    counts = (
        env.from_source(source.set_value_only_deserializer(strings).build(), WatermarkStrategy.no_watermarks(), "in")
        .map(lambda name: (name, 1), Types.TUPLE([Types.STRING(), Types.LONG()]))
        .key_by(lambda pair: pair[0], Types.STRING())
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING())
    )
    message = KafkaRecordSerializationSchema.builder().set_topic("counts").set_value_serialization_schema(strings)
    sink = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(message.build())
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("payments")
    counts.sink_to(sink.set_staging_directory(f"{directory}/staged").build())
    env.execute("count payments")


if len(sys.argv) == 3:
    sys.exit(count_payments(*sys.argv[1:]))
with KafkaBroker() as broker, tempfile.TemporaryDirectory() as directory:
    broker.create_topic("payments", partitions=2), broker.create_topic("counts")
    broker.produce("payments", (PEOPLE[number % len(PEOPLE)] for number in range(PAYMENTS)))
    for share in (0.2, 0.6, 1.0):  # of the results, then the job is killed
        job = subprocess.Popen([sys.executable, __file__, broker.bootstrap_servers, directory])
        while job.poll() is None and len(broker.values("counts")) < share * PAYMENTS:
            time.sleep(1)  # each check reads all results
        job.kill(), job.wait()
        print(f"killed -9 with {len(broker.values('counts'))} results" if share < 1 else "all results are there")
    expected = {f"{name} {n}" for i, name in enumerate(PEOPLE) for n in range(1, len(range(i, PAYMENTS, 3)) + 1)}
    assert Counter(broker.values("counts")) == Counter(expected), "something was lost or doubled"
print("every payment was counted once")
