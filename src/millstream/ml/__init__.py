"""Learning on tables and streams, with the names of Flink ML, on iterations.

Promises: training and prediction work on arrays of batches; the model is state or a table, so all of it is exactly
once.
Does not know: how rounds are planned."""

from millstream.ml.api import AlgoOperator, Estimator, Model, Stage, Transformer
from millstream.ml.builder import Pipeline, PipelineModel
from millstream.ml.classification.logisticregression import (
    LogisticRegression,
    LogisticRegressionModel,
    OnlineLogisticRegression,
    OnlineLogisticRegressionModel,
)
from millstream.ml.clustering.kmeans import (
    KMeans,
    KMeansModel,
    OnlineKMeans,
    OnlineKMeansModel,
    generate_random_model_data,
)
from millstream.ml.common.window import CountTumblingWindows, GlobalWindows
from millstream.ml.feature.featurehasher import FeatureHasher
from millstream.ml.feature.onehotencoder import OneHotEncoder, OneHotEncoderModel
from millstream.ml.feature.standardscaler import (
    OnlineStandardScaler,
    OnlineStandardScalerModel,
    StandardScaler,
    StandardScalerModel,
)
from millstream.ml.feature.vectorassembler import VectorAssembler
from millstream.ml.linalg import DenseVectorTypeInfo, SparseVectorTypeInfo, Vectors
from millstream.ml.param import Param, WithParams
from millstream.ml.regression.linearregression import (
    LinearRegression,
    LinearRegressionModel,
    OnlineLinearRegression,
    OnlineLinearRegressionModel,
)

__all__ = [
    "AlgoOperator",
    "CountTumblingWindows",
    "DenseVectorTypeInfo",
    "Estimator",
    "FeatureHasher",
    "GlobalWindows",
    "KMeans",
    "KMeansModel",
    "LinearRegression",
    "LinearRegressionModel",
    "LogisticRegression",
    "LogisticRegressionModel",
    "Model",
    "OneHotEncoder",
    "OneHotEncoderModel",
    "OnlineKMeans",
    "OnlineKMeansModel",
    "OnlineLinearRegression",
    "OnlineLinearRegressionModel",
    "OnlineLogisticRegression",
    "OnlineLogisticRegressionModel",
    "OnlineStandardScaler",
    "OnlineStandardScalerModel",
    "Param",
    "Pipeline",
    "PipelineModel",
    "SparseVectorTypeInfo",
    "Stage",
    "StandardScaler",
    "StandardScalerModel",
    "Transformer",
    "VectorAssembler",
    "Vectors",
    "WithParams",
    "generate_random_model_data",
]
