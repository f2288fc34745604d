"""Jobs with authentication or TLS read and write as others do; wrong credentials give a clear error."""

from __future__ import annotations

import confluent_kafka
import pytest
from kafka_running import LATEST, environment

from millstream.common import SimpleStringSchema, WatermarkStrategy
from millstream.connectors.kafka.client import LoginRefused
from millstream.connectors.kafka.properties import BadKafkaProperty, translate_properties
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource

VALUES = [str(number) for number in range(20)]


def source_of(connection, topic):
    builder = KafkaSource.builder().set_properties(connection).set_topics(topic).set_group_id(f"readers-{topic}")
    return builder.set_value_only_deserializer(SimpleStringSchema()).set_bounded(LATEST).build()


def sink_to(connection, topic, staging):
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic)
    serializer.set_value_serialization_schema(SimpleStringSchema())
    builder = KafkaSink.builder().set_record_serializer(serializer.build()).set_transactional_id_prefix(topic)
    for name, value in connection.items():
        builder.set_property(name, value)
    return builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_staging_directory(staging).build()


@pytest.mark.usefixtures("inline_engine")
@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SSL", ""), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_PLAINTEXT", "SCRAM-SHA-256"), ("SASL_SSL", "SCRAM-SHA-512")],
)
def test_a_job_goes_through_a_secure_listener(broker, new_topic, staging, tmp_path, protocol, mechanism):
    """Source and exactly-once sink, with the properties that the Java client takes."""
    read, written = new_topic("in"), new_topic("out")
    broker.produce(read, VALUES)
    connection = broker.connection(protocol, mechanism)
    env = environment(tmp_path)
    values = env.from_source(source_of(connection, read), WatermarkStrategy.no_watermarks(), "kafka")
    values.sink_to(sink_to(connection, written, staging))
    env.execute()
    assert broker.values(written) == VALUES


@pytest.mark.parametrize(
    ("protocol", "change"),
    [
        ("SASL_PLAINTEXT", {"sasl.username": "ann", "sasl.password": "wrong", "sasl.jaas.config": None}),
        ("SASL_SSL", {"ssl.truststore.location": None}),
    ],
    ids=["password", "certificate"],
)
def test_a_refused_log_in_names_the_reason(broker, topic, staging, protocol, change):
    connection = broker.connection(protocol, "PLAIN") | change
    connection = {name: value for name, value in connection.items() if value is not None}
    for end in (source_of(connection, topic), sink_to(connection, topic, staging)):
        with pytest.raises(LoginRefused, match=r"refused the log-in"):
            end.check()


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("jaas", "login"),
    [
        (f'{SCRAM} required username="ann" password="a\\"b;=";', ("ann", 'a"b;=')),
        (f"{SCRAM} required\n  username='ann'\n  password=plain;", ("ann", "plain")),
        (f'org.apache.flink.kafka.shaded.{SCRAM} optional password="p" username="ann";', ("ann", "p")),
    ],
)
def test_a_log_in_of_java_is_translated(jaas, login):
    assert translate_properties({"sasl.jaas.config": jaas}) == dict(
        zip(("sasl.username", "sasl.password"), login, strict=True)
    )


@pytest.mark.parametrize(
    ("properties", "named", "instead"),
    [
        ({"ssl.truststore.location": "t.jks", "ssl.truststore.password": "p"}, "ssl.truststore.location", "ssl.ca.loc"),
        ({"ssl.truststore.location": "t.p12"}, "ssl.truststore.location", "ssl.ca.location"),
        ({"ssl.keystore.location": "k.jks"}, "ssl.keystore.location", "ssl.certificate.location and ssl.key.location"),
        ({"ssl.engine.factory.class": "a.B"}, "ssl.engine.factory.class", "ssl.ca.location"),
        ({"sasl.login.callback.handler.class": "a.B"}, "sasl.login.callback.handler.class", "sasl.username"),
        ({"sasl.jaas.config": "a.OAuthBearerLoginModule required;"}, "sasl.jaas.config", "sasl.oauthbearer.client.id"),
        ({"sasl.jaas.config": "a.b.IAMLoginModule required;"}, "sasl.jaas.config", "sasl.username"),
        ({"sasl.jaas.config": f'{SCRAM} required username="ann";'}, "sasl.jaas.config", "password="),
    ],
)
def test_properties_of_java_only_are_refused_with_an_alternative(properties, named, instead):
    with pytest.raises(BadKafkaProperty) as refused:
        translate_properties(properties)
    assert refused.value.name == named
    assert instead in (refused.value.hint or "")


def test_stores_of_certificates_are_those_of_librdkafka():
    """The translated properties exist in librdkafka."""
    pem = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "ca", "ssl.keystore.location": "client.pem"}
    assert translate_properties(pem) == {
        "ssl.ca.location": "ca",
        "ssl.certificate.location": "client.pem",
        "ssl.key.location": "client.pem",
    }
    store = {"ssl.keystore.location": "k.p12", "ssl.keystore.password": "p"}
    assert translate_properties({**store, "ssl.keystore.type": "PKCS12"}) == store
    unchecked = translate_properties({"ssl.endpoint.identification.algorithm": ""})
    confluent_kafka.Producer({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL", **unchecked})
