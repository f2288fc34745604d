"""The running standard scaler, under the name of its module in Flink ML."""

from millstream.ml.feature.standardscaler import OnlineStandardScaler, OnlineStandardScalerModel

__all__ = ["OnlineStandardScaler", "OnlineStandardScalerModel"]
