"""Machine learning: columns are assembled and scaled, a classifier is trained, saved, loaded and applied."""

import tempfile
from pathlib import Path

from millstream.datastream import StreamExecutionEnvironment
from millstream.ml import LogisticRegression, Pipeline, PipelineModel, StandardScaler, VectorAssembler
from millstream.table import StreamTableEnvironment

FLOWERS = [  # length and width of a petal in cm, and whether it is an iris virginica
    (4.5, 1.5, 0.0), (5.0, 1.7, 0.0), (4.1, 1.3, 0.0), (4.7, 1.4, 0.0), (3.9, 1.2, 0.0), (4.4, 1.3, 0.0),
    (6.0, 2.5, 1.0), (5.1, 1.9, 1.0), (5.9, 2.1, 1.0), (5.6, 1.8, 1.0), (5.8, 2.2, 1.0), (6.6, 2.1, 1.0),
]  # fmt: skip

t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
flowers = t_env.from_elements(FLOWERS, ["length", "width", "label"])

pipeline = Pipeline(
    [
        VectorAssembler().set_input_cols("length", "width").set_output_col("petal"),
        StandardScaler().set_input_col("petal").set_output_col("features").set_with_mean(True),
        LogisticRegression().set_max_iter(10).set_learning_rate(1.0),
    ]
)
with tempfile.TemporaryDirectory() as directory:
    path = str(Path(directory, "model"))
    pipeline.fit(flowers).save(path)
    model = PipelineModel.load(t_env, path)
    more = t_env.from_elements([(4.2, 1.2), (6.1, 2.3)], ["length", "width"])
    for length, width, _, _, prediction, _ in sorted(
        tuple(row) for row in model.transform(more)[0].execute().collect()
    ):
        print(f"petal of {length} x {width} cm: {'virginica' if prediction else 'another iris'}")
