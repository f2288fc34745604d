"""PyFlink's `datastream.connectors.elasticsearch`: Elasticsearch and OpenSearch as a sink."""

from millstream.connectors.elasticsearch import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    ElasticsearchSink,
    ElasticsearchSinkBuilderBase,
    FlushBackoffType,
)

__all__ = [
    "Elasticsearch6SinkBuilder",
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "ElasticsearchSinkBuilderBase",
    "FlushBackoffType",
]
