"""Elasticsearch and OpenSearch as a sink, under the names of Flink's connector."""

from millstream.connectors.elasticsearch.builders import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchSinkBuilderBase,
    FlushBackoffType,
)
from millstream.connectors.elasticsearch.documents import ElasticsearchEmitter
from millstream.connectors.elasticsearch.sink import ElasticsearchSink

__all__ = [
    "Elasticsearch6SinkBuilder",
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "ElasticsearchSinkBuilderBase",
    "FlushBackoffType",
]
