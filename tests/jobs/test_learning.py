"""millstream.ml against scikit-learn, plain loops, and values of Flink ML."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from sklearn import linear_model
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import OneHotEncoder as SklearnOneHotEncoder
from sklearn.preprocessing import StandardScaler as SklearnScaler

from millstream.common import Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import InvalidArgument, InvalidArgumentType, UserError
from millstream.ml import (
    CountTumblingWindows,
    DenseVectorTypeInfo,
    FeatureHasher,
    KMeans,
    KMeansModel,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionModel,
    OneHotEncoder,
    OneHotEncoderModel,
    OnlineKMeans,
    OnlineLinearRegression,
    OnlineLogisticRegression,
    OnlineLogisticRegressionModel,
    OnlineStandardScaler,
    Pipeline,
    PipelineModel,
    StandardScaler,
    StandardScalerModel,
    VectorAssembler,
    Vectors,
    generate_random_model_data,
)
from millstream.ml.linear_learners import GradientDescent, SquaredLoss
from millstream.ml.samples import Samples
from millstream.ml.vector_rows import DenseRows
from millstream.table import DataTypes, StreamTableEnvironment


@pytest.fixture
def t_env(env):
    return StreamTableEnvironment.create(env)


def environment(parallelism):
    return StreamTableEnvironment.create(
        StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    )


def samples(t_env, features, labels=None, splits=3):
    """A table of features and labels, read by several subtasks."""
    columns = {"id": np.arange(len(features)), "features": list(np.asarray(features, dtype=float))}
    if labels is not None:
        columns["label"] = np.asarray(labels, dtype=float)
    return t_env.from_arrow(pa.table(columns), splits_num=splits)


def column(table, name):
    """The values of a column, in the order of the column id."""
    frame = table.to_arrow().sort_by("id")
    return np.array(frame[name].to_pylist())


def model_data(model):
    return {name: values[-1] for name, values in model.get_model_data()[0].to_arrow().to_pydict().items()}


def sparse(vectors):
    return [
        Vectors.sparse(len(vector), {i: value for i, value in enumerate(vector) if value != 0}) for vector in vectors
    ]


SPARSE = DataTypes.ROW(
    [
        DataTypes.FIELD("size", DataTypes.INT()),
        DataTypes.FIELD("indices", DataTypes.ARRAY(DataTypes.INT())),
        DataTypes.FIELD("values", DataTypes.ARRAY(DataTypes.DOUBLE())),
    ]
)


@pytest.fixture(scope="module")
def cancer():
    features, labels = load_breast_cancer(return_X_y=True)
    return SklearnScaler().fit_transform(features), labels


# ----------------------------------------------------------------------------------------------------- linear models


def test_logistic_regression_finds_the_coefficients_of_scikit_learn(t_env, cancer):
    features, labels = cancer
    reg = 0.3
    train = LogisticRegression().set_max_iter(60).set_global_batch_size(10_000).set_learning_rate(0.5).set_reg(reg)
    model = train.fit(samples(t_env, features, labels))
    # Flink ML shrinks the coefficients after the step, which makes the regularization a little stronger
    effective = reg / (1 - 0.5 * reg)
    oracle = linear_model.LogisticRegression(fit_intercept=False, C=1 / (len(labels) * effective), tol=1e-8)
    oracle.fit(features, labels)
    assert model_data(model)["coefficient"] == pytest.approx(oracle.coef_[0], abs=1e-4)


def test_mini_batches_reach_the_accuracy_of_scikit_learn(t_env, cancer):
    features, labels = cancer
    table = samples(t_env, features, labels)
    model = LogisticRegression().set_max_iter(60).set_global_batch_size(100).set_learning_rate(0.5).fit(table)
    result = model.transform(table)[0].to_arrow().sort_by("id")
    oracle = linear_model.LogisticRegression(fit_intercept=False).fit(features, labels)
    expected = accuracy_score(labels, oracle.predict(features))
    assert accuracy_score(labels, result["prediction"].to_numpy()) > expected - 0.02
    raw = np.array(result["raw_prediction"].to_pylist())
    assert raw.sum(axis=1) == pytest.approx(np.ones(len(raw)))
    assert ((raw[:, 1] >= 0.5) == result["prediction"].to_numpy()).all()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_parallelism_does_not_change_the_mini_batches(parallelism, cancer):
    features, labels = cancer
    train = LogisticRegression().set_max_iter(9).set_global_batch_size(50)
    model = train.fit(samples(environment(parallelism), features, labels))
    other = train.fit(samples(environment(2), features[::-1], labels[::-1], splits=1))
    assert model_data(model)["coefficient"] == pytest.approx(model_data(other)["coefficient"], rel=1e-9)


@pytest.mark.parametrize("elastic_net", [0.0, 0.4])
def test_linear_regression_makes_the_steps_of_a_plain_loop(t_env, elastic_net):
    chance = np.random.default_rng(3)
    features, weights = chance.normal(size=(200, 4)), chance.random(200)
    labels = features @ [1.0, -2.0, 0.0, 3.0] + chance.normal(size=200)
    rows = [(i, x.tolist(), y, w) for i, (x, y, w) in enumerate(zip(features, labels, weights, strict=True))]
    table = t_env.from_elements(rows, ["id", "features", "label", "weight"])
    train = LinearRegression().set_max_iter(7).set_global_batch_size(200).set_reg(0.3).set_elastic_net(elastic_net)
    model = train.set_weight_col("weight").fit(table)
    coefficient = [0.0] * 4
    for _ in range(7):
        gradient = [0.0] * 4
        for x, y, w in zip(features, labels, weights, strict=True):
            error = sum(c * v for c, v in zip(coefficient, x, strict=True)) - y
            gradient = [g + w * error * v for g, v in zip(gradient, x, strict=True)]
        coefficient = [c - 0.1 / sum(weights) * g for c, g in zip(coefficient, gradient, strict=True)]
        coefficient = [c - 0.1 * 0.3 * (elastic_net * np.sign(c) + (1 - elastic_net) * c) for c in coefficient]
    assert model_data(model)["coefficient"] == pytest.approx(coefficient, rel=1e-9)


def test_linear_regression_finds_the_coefficients_of_scikit_learn(t_env):
    chance = np.random.default_rng(4)
    features = chance.normal(size=(500, 5))
    labels = features @ [1.0, -2.0, 0.5, 3.0, 0.0] + chance.normal(scale=0.1, size=500)
    table = samples(t_env, features, labels)
    model = LinearRegression().set_max_iter(40).set_global_batch_size(1000).set_learning_rate(0.6).fit(table)
    oracle = linear_model.LinearRegression(fit_intercept=False).fit(features, labels)
    assert model_data(model)["coefficient"] == pytest.approx(oracle.coef_, abs=1e-6)
    assert column(model.transform(table)[0], "prediction") == pytest.approx(oracle.predict(features), abs=1e-5)


def test_training_ends_when_the_loss_is_small_enough(t_env):
    table = samples(t_env, [[1.0], [2.0]], [1.0, 2.0])
    short, long = (LinearRegression().set_max_iter(rounds).set_tol(0.5).fit(table) for rounds in (30, 31))
    assert model_data(short) == model_data(long)
    assert 0 < model_data(short)["coefficient"][0] < 0.9


def test_sparse_features_give_the_model_of_dense_ones(t_env, cancer):
    features, labels = np.where(cancer[0] > 0.5, cancer[0], 0.0), cancer[1]
    train = LogisticRegression().set_max_iter(5).set_global_batch_size(10_000)
    dense = train.fit(samples(t_env, features, labels))
    row = DataTypes.ROW([DataTypes.FIELD("features", SPARSE), DataTypes.FIELD("label", DataTypes.DOUBLE())])
    rows = t_env.from_elements(list(zip(sparse(features), map(float, labels), strict=True)), row)
    model = train.fit(rows)
    assert model_data(model)["coefficient"] == pytest.approx(model_data(dense)["coefficient"], rel=1e-9)
    assert model.transform(rows)[0].to_arrow().num_rows == len(labels)


# ------------------------------------------------------------------------------------------------------ online models


def ftrl(features, labels, size, logistic, alpha=0.1, beta=0.1, l1=0.0, l2=0.0):
    """FTRL-proximal, one coordinate at a time; the coefficients after each mini-batch."""
    width = len(features[0])
    z, n, w, versions = [0.0] * width, [0.0] * width, [0.0] * width, []
    for start in range(0, len(features) - size + 1, size):
        gradient = [0.0] * width
        for x, y in zip(features[start : start + size], labels[start : start + size], strict=True):
            product = sum(c * v for c, v in zip(w, x, strict=True))
            prediction = 1 / (1 + np.exp(-product)) if logistic else product
            gradient = [g + (prediction - y) * v / size for g, v in zip(gradient, x, strict=True)]
        for i, g in enumerate(gradient):
            z[i] += g - (np.sqrt(n[i] + g * g) - np.sqrt(n[i])) / alpha * w[i]
            n[i] += g * g
            w[i] = 0.0 if abs(z[i]) <= l1 else (np.sign(z[i]) * l1 - z[i]) / ((beta + np.sqrt(n[i])) / alpha + l2)
        versions.append(list(w))
    return versions


@pytest.mark.parametrize("logistic", [True, False])
def test_online_regressions_make_the_steps_of_a_plain_loop(t_env, logistic, cancer):
    features, labels = cancer[0][:150, :6], cancer[1][:150]
    estimator = OnlineLogisticRegression() if logistic else OnlineLinearRegression()
    estimator.set_global_batch_size(20).set_reg(0.2).set_elastic_net(0.25)
    data = estimator.fit(samples(t_env, features, labels, splits=1)).get_model_data()[0].to_arrow().to_pydict()
    expected = ftrl(features, labels, 20, logistic, l1=0.05, l2=0.15)
    assert data["model_version"] == [1, 2, 3, 4, 5, 6, 7]
    assert np.array(data["coefficient"]) == pytest.approx(np.array(expected), rel=1e-9)


def test_online_logistic_regression_comes_near_the_accuracy_of_scikit_learn(t_env, cancer):
    features, labels = np.tile(cancer[0], (4, 1)), np.tile(cancer[1], 4)
    model = OnlineLogisticRegression().fit(samples(t_env, features, labels, splits=1))
    coefficient = np.array(model_data(model)["coefficient"])
    oracle = linear_model.SGDClassifier(loss="log_loss", fit_intercept=False, random_state=0).fit(*cancer)
    expected = accuracy_score(cancer[1], oracle.predict(cancer[0]))
    assert accuracy_score(cancer[1], cancer[0] @ coefficient >= 0) > expected - 0.02


def test_an_online_model_continues_from_a_batch_model(t_env, cancer):
    features, labels = cancer
    table = samples(t_env, features, labels, splits=1)
    first = LogisticRegression().set_max_iter(3).fit(table)
    online = OnlineLogisticRegression().set_global_batch_size(569).set_alpha(1e-9)
    online.set_initial_model_data(first.get_model_data()[0])
    # with n = 0 the first step of FTRL replaces the coefficients, so only that they were read can be seen
    fresh = OnlineLogisticRegression().set_global_batch_size(569).set_alpha(1e-9)
    assert model_data(online.fit(table)) != model_data(fresh.fit(table))


def test_rows_wait_for_the_first_model_and_name_the_version_that_served_them(t_env, cancer):
    table = samples(t_env, *cancer)
    result = OnlineLogisticRegression().set_global_batch_size(100).fit(table).transform(table)[0].to_arrow()
    assert sorted(result["id"].to_pylist()) == list(range(569))
    assert set(result["model_version"].to_pylist()) <= {1, 2, 3, 4, 5}


def test_online_k_means_moves_as_a_plain_loop(t_env):
    chance = np.random.default_rng(5)
    points = np.concatenate((chance.normal(0, 1, (95, 2)), chance.normal(6, 1, (90, 2))))
    chance.shuffle(points)
    initial = t_env.from_elements([([[0.0, 1.0], [5.0, 4.0]], [1.0, 1.0])], ["centroids", "weights"])
    train = OnlineKMeans().set_k(2).set_decay_factor(0.5).set_global_batch_size(30).set_initial_model_data(initial)
    data = train.fit(samples(t_env, points, splits=1)).get_model_data()[0].to_arrow().to_pydict()
    centroids, weights = [np.array([0.0, 1.0]), np.array([5.0, 4.0])], [1.0, 1.0]
    for start in range(0, 180, 30):
        clusters = [[], []]
        for point in points[start : start + 30]:
            distances = [float(np.hypot(*(point - centroid))) for centroid in centroids]
            clusters[int(distances[1] < distances[0])].append(point)
        for index, cluster in enumerate(clusters):
            weights[index] = weights[index] * 0.5 + len(cluster)
            share = len(cluster) / weights[index]
            centroids[index] = centroids[index] * (1 - share) + np.mean(cluster, axis=0) * share
    assert len(data["model_version"]) == 6
    assert np.array(data["centroids"][-1]) == pytest.approx(np.array(centroids), rel=1e-9)
    assert data["weights"][-1] == pytest.approx(weights)


def test_the_running_scaler_knows_all_records_until_the_end_of_a_window(t_env):
    points = np.random.default_rng(6).normal(1e6, 2.0, (70, 3))
    scaler = OnlineStandardScaler().set_input_col("features").set_windows(CountTumblingWindows.of(20))
    data = scaler.fit(samples(t_env, points, splits=1)).get_model_data()[0].to_arrow().to_pydict()
    for version, count in enumerate((20, 40, 60)):
        assert data["mean"][version] == pytest.approx(points[:count].mean(axis=0), rel=1e-12)
        assert data["std"][version] == pytest.approx(points[:count].std(axis=0, ddof=1), rel=1e-9)
    assert data["model_version"] == [1, 2, 3]
    whole = OnlineStandardScaler().set_input_col("features").fit(samples(t_env, points))
    assert model_data(whole)["std"] == pytest.approx(points.std(axis=0, ddof=1), rel=1e-9)


# ---------------------------------------------------------------------------------------------------------- k-means


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(n_samples=600, centers=4, n_features=3, cluster_std=1.5, random_state=8)[0]


def test_a_round_of_k_means_is_one_of_scikit_learn(t_env, blobs):
    table = samples(t_env, blobs)
    before, after = (
        np.array(model_data(KMeans().set_k(5).set_max_iter(rounds).fit(table))["centroids"]) for rounds in (2, 3)
    )
    oracle = SklearnKMeans(5, init=before, n_init=1, max_iter=1, algorithm="lloyd").fit(blobs)
    assert not np.allclose(before, after)
    assert after == pytest.approx(oracle.cluster_centers_, rel=1e-9)


def test_k_means_ends_at_a_good_fixed_point(t_env, blobs):
    table = samples(t_env, blobs)
    model = KMeans().set_k(4).set_seed(2).set_max_iter(50).fit(table)
    data = model_data(model)
    centroids = np.array(data["centroids"])
    oracle = SklearnKMeans(4, n_init=10, random_state=0).fit(blobs)
    again = SklearnKMeans(4, init=centroids, n_init=1, max_iter=1, algorithm="lloyd").fit(blobs)
    assert again.cluster_centers_ == pytest.approx(centroids, rel=1e-9)
    assert again.inertia_ < 1.01 * oracle.inertia_
    assert column(model.transform(table)[0], "prediction").tolist() == again.labels_.tolist()
    assert data["weights"] == np.bincount(again.labels_).tolist()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_parallelism_does_not_change_clusters(parallelism, blobs):
    train = KMeans().set_k(4).set_seed(9).set_max_iter(4)
    one = model_data(train.fit(samples(environment(parallelism), blobs)))["centroids"]
    other = model_data(train.fit(samples(environment(2), blobs[::-1], splits=1)))["centroids"]
    assert np.array(one) == pytest.approx(np.array(other), rel=1e-9)


@pytest.mark.parametrize("measure", ["manhattan", "cosine"])
def test_other_distances(t_env, blobs, measure):
    table = samples(t_env, blobs)
    model = KMeans().set_k(4).set_distance_measure(measure).set_max_iter(3).fit(table)
    centroids = np.array(model_data(model)["centroids"])
    expected = []
    for point in blobs:
        if measure == "manhattan":
            distances = [abs(point - centroid).sum() for centroid in centroids]
        else:
            distances = [-point @ c / np.linalg.norm(point) / np.linalg.norm(c) for c in centroids]
        expected.append(int(np.argmin(distances)))
    assert column(model.transform(table)[0], "prediction").tolist() == expected


def test_sparse_points_have_the_clusters_of_dense_ones(t_env):
    points = np.random.default_rng(1).integers(0, 3, (60, 5)).astype(float)
    dense = KMeans().set_k(3).fit(samples(t_env, points)).get_model_data()[0].to_arrow().to_pydict()
    initial = t_env.from_elements([(dense["centroids"][0], dense["weights"][0])], ["centroids", "weights"])
    rows = t_env.from_elements([(vector,) for vector in sparse(points)], DataTypes.ROW([DataTypes.FIELD("f", SPARSE)]))
    found = KMeansModel().set_features_col("f").set_model_data(initial).transform(rows)[0].to_arrow()
    again = KMeansModel().set_model_data(initial).transform(samples(t_env, points))[0]
    counts = np.bincount(found["prediction"].to_numpy()).tolist()
    assert counts == np.bincount(column(again, "prediction")).tolist()


def test_fewer_points_than_clusters(t_env):
    model = KMeans().set_k(5).fit(samples(t_env, [[1.0], [1.0], [4.0]]))
    assert sorted(model_data(model)["centroids"]) == [[1.0], [4.0]]


# --------------------------------------------------------------------------------------------------------- features


@pytest.mark.parametrize(("with_mean", "with_std"), list(itertools.product((True, False), repeat=2)))
def test_the_scaler_scales_as_scikit_learn(t_env, with_mean, with_std):
    points = np.random.default_rng(2).normal(1e5, 3.0, (80, 3))
    points[:, 1] = 7.0  # does not vary
    table = samples(t_env, points)
    scaler = StandardScaler().set_input_col("features").set_with_mean(with_mean).set_with_std(with_std)
    result = column(scaler.fit(table).transform(table)[0], "output")
    expected = SklearnScaler(with_mean=with_mean, with_std=with_std).fit_transform(points)
    if with_std:  # scikit-learn divides by the deviation of the population
        expected *= np.sqrt(79 / 80)
        expected[:, 1] = 0.0  # Flink ML makes 0 of what does not vary
    assert result == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_scaler_of_sparse_vectors(t_env):
    points = np.random.default_rng(2).integers(0, 4, (50, 4)).astype(float)
    rows = t_env.from_elements(list(enumerate(sparse(points))), _with_id(SPARSE))
    model = StandardScaler().set_input_col("v").fit(rows)
    assert model_data(model)["std"] == pytest.approx(points.std(axis=0, ddof=1), rel=1e-12)
    scaled = model.transform(rows)[0].to_arrow().sort_by("id")["output"].to_pylist()
    expected = points / points.std(axis=0, ddof=1)
    for vector, full in zip(scaled, expected, strict=True):
        assert vector["size"] == 4
        assert vector["values"] == pytest.approx(full[full != 0])


def _with_id(data_type):
    return DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("v", data_type)])


@pytest.mark.parametrize("drop_last", [True, False])
def test_one_hot_encoding_is_that_of_scikit_learn(t_env, drop_last):
    rows = [(0, 0, 1), (1, 3, 0), (2, 1, 0), (3, 2, 2)]
    table = t_env.from_elements(rows, ["id", "a", "b"])
    encoder = OneHotEncoder().set_input_cols("a", "b").set_output_cols("x", "y").set_drop_last(drop_last)
    result = encoder.fit(table).transform(table)[0].to_arrow().sort_by("id")
    oracle = SklearnOneHotEncoder(sparse_output=False).fit([row[1:] for row in rows])
    expected = oracle.transform([row[1:] for row in rows])
    for name, first, width in (("x", 0, 4), ("y", 4, 3)):
        for vector, full in zip(result[name].to_pylist(), expected, strict=True):
            dense = np.zeros(vector["size"])
            dense[vector["indices"]] = vector["values"]
            assert dense.tolist() == full[first : first + width - drop_last].tolist()


def test_unknown_categories_are_an_error_or_are_skipped(t_env):
    encoder = OneHotEncoder().set_input_cols("a").set_output_cols("x")
    model = encoder.fit(t_env.from_elements([(0,), (1,)], ["a"]))
    more = t_env.from_elements([(0,), (2,)], ["a"])
    with pytest.raises(UserError, match="'a' contains the category 2, the greatest known one is 1"):
        model.transform(more)[0].to_arrow()
    assert model.set_handle_invalid("skip").transform(more)[0].to_arrow()["a"].to_pylist() == [0]
    with pytest.raises(UserError, match=r"category 0\.5, which is not an index"):
        encoder.fit(t_env.from_elements([(0.5,)], ["a"])).get_model_data()[0].to_arrow()


def test_hashes_are_those_of_flink_ml(t_env):
    table = t_env.from_elements([(0, "a", 1.0, True), (1, "c", 1.0, False)], ["id", "f0", "f1", "f2"])
    hasher = FeatureHasher().set_input_cols("f0", "f1", "f2").set_output_col("vec").set_num_features(1000)
    for stage in (hasher, FeatureHasher()._copy_params(hasher).set_categorical_cols("f0", "f2")):
        first, second = stage.transform(table)[0].to_arrow().sort_by("id")["vec"].to_pylist()
        assert first == {"size": 1000, "indices": [607, 635, 913], "values": [1.0, 1.0, 1.0]}
        assert second == {"size": 1000, "indices": [242, 869, 913], "values": [1.0, 1.0, 1.0]}


def guava_murmur3(text):
    """Murmur3 of UTF-16 characters, as Java's Guava computes it."""
    units = text.encode("utf-16-le")
    units = [units[i] | units[i + 1] << 8 for i in range(0, len(units), 2)]

    def rotate(number, count):
        return (number << count | number >> (32 - count)) & 0xFFFFFFFF

    def mix(block):
        return rotate(block * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    result = 0
    for i in range(1, len(units), 2):
        result = rotate(result ^ mix(units[i - 1] | units[i] << 16), 13) * 5 + 0xE6546B64 & 0xFFFFFFFF
    if len(units) % 2:
        result ^= mix(units[-1])
    result ^= 2 * len(units)
    result = (result ^ result >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    result = (result ^ result >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    result ^= result >> 16
    return result - 2**32 if result >= 2**31 else result


def test_any_text_is_hashed_and_collisions_add_up(t_env):
    words = ["", "x", "häuser", "😀", "a😀b", "a long text, longer than all others", None, "x"]
    rows = [(i, word, 2.5, i) for i, word in enumerate(words)]
    table = t_env.from_elements(rows, ["id", "word", "n", "c"])
    hasher = FeatureHasher().set_input_cols("word", "n", "c").set_categorical_cols("c").set_num_features(2)
    for row, vector in zip(rows, column(hasher.transform(table)[0], "output"), strict=True):
        expected = [0.0, 0.0]
        expected[abs(guava_murmur3("n")) % 2] += 2.5
        expected[abs(guava_murmur3(f"c={row[3]}")) % 2] += 1.0
        if row[1] is not None:
            expected[abs(guava_murmur3(f"word={row[1]}")) % 2] += 1.0
        found = [0.0, 0.0]
        for index, value in zip(vector["indices"], vector["values"], strict=True):
            found[index] = value
        assert found == expected


def test_the_assembler_joins_numbers_and_vectors(t_env):
    rows = [(1, [2.0, 3.0], 4.5), (None, [5.0, 6.0], 7.5), (8, [9.0, 10.0], float("nan"))]
    data_type = DataTypes.ROW(
        [
            DataTypes.FIELD("a", DataTypes.INT()),
            DataTypes.FIELD("b", DataTypes.ARRAY(DataTypes.DOUBLE())),
            DataTypes.FIELD("c", DataTypes.DOUBLE()),
        ]
    )
    table = t_env.from_elements(rows, data_type)
    assembler = VectorAssembler().set_input_cols("a", "b", "c").set_output_col("v")
    with pytest.raises(UserError, match="the column 'a' contains NULL or NaN"):
        assembler.transform(table)[0].to_arrow()
    result = assembler.set_handle_invalid("skip").transform(table)[0].to_arrow()
    assert result["v"].to_pylist() == [[1.0, 2.0, 3.0, 4.5]]


def test_the_assembler_joins_sparse_vectors(t_env):
    rows = [(0, Vectors.sparse(3, {1: 5.0})), (7, Vectors.sparse(3, {0: 6.0, 2: 8.0}))]
    table = t_env.from_elements(rows, _with_id(SPARSE))
    result = VectorAssembler().set_input_cols("id", "v", "id").transform(table)[0].to_arrow()
    first, second = sorted(result["output"].to_pylist(), key=lambda vector: vector["values"])
    assert first == {"size": 5, "indices": [0, 2, 4], "values": [0.0, 5.0, 0.0]}
    assert second == {"size": 5, "indices": [0, 1, 3, 4], "values": [7.0, 6.0, 8.0, 7.0]}


# ------------------------------------------------------------------------------------------------ pipelines and files


def pipeline():
    return Pipeline(
        [
            StandardScaler().set_input_col("features").set_output_col("scaled"),
            LogisticRegression().set_features_col("scaled").set_max_iter(10).set_global_batch_size(1000),
        ]
    )


def test_a_pipeline_is_fitted_saved_and_loaded(t_env, cancer, tmp_path):
    table = samples(t_env, *cancer)
    model = pipeline().fit(table)
    expected = column(model.transform(table)[0], "raw_prediction")
    assert accuracy_score(cancer[1], expected[:, 1] > 0.5) > 0.9
    model.save(str(tmp_path / "model"))
    pipeline().save(str(tmp_path / "pipeline"))
    other = environment(3)
    loaded = PipelineModel.load(other, str(tmp_path / "model"))
    assert column(loaded.transform(samples(other, *cancer))[0], "raw_prediction").tolist() == expected.tolist()
    refitted = Pipeline.load(t_env, str(tmp_path / "pipeline")).fit(table).transform(table)[0]
    assert column(refitted, "raw_prediction") == pytest.approx(expected, rel=1e-9)


def test_the_newest_version_of_an_online_model_is_saved(t_env, cancer, tmp_path):
    table = samples(t_env, *cancer, splits=1)
    model = OnlineLogisticRegression().set_global_batch_size(200).set_alpha(0.5).fit(table)
    model.save(str(tmp_path / "model"))
    loaded = OnlineLogisticRegressionModel.load(t_env, str(tmp_path / "model"))
    assert loaded.get_model_data()[0].to_arrow().to_pydict() == {
        name: [value] for name, value in model_data(model).items()
    }
    assert set(column(loaded.transform(table)[0], "model_version")) == {2}


def test_an_online_model_without_a_version_is_not_saved(t_env, tmp_path):
    model = OnlineLogisticRegression().fit(samples(t_env, [[1.0]], [1.0]))
    with pytest.raises(InvalidArgument, match="has no version yet; hint: train with at least one mini-batch"):
        model.save(str(tmp_path / "model"))


def test_files_of_models_are_checked(t_env, tmp_path):
    model = KMeans().set_k(2).fit(samples(t_env, [[1.0], [2.0]]))
    path = str(tmp_path / "model")
    model.save(path)
    with pytest.raises(InvalidArgument, match="contains a stage already"):
        model.save(path)
    with pytest.raises(InvalidArgument, match=r"contains a .*\.KMeansModel, not a .*\.StandardScalerModel"):
        StandardScalerModel.load(t_env, path)
    with pytest.raises(InvalidArgument, match="contains no saved stage"):
        KMeansModel.load(t_env, str(tmp_path / "nothing"))
    metadata = tmp_path / "model" / "metadata.json"
    metadata.write_text(metadata.read_text().replace('"k"', '"k'))
    with pytest.raises(InvalidArgument, match=r"metadata\.json is damaged"):
        KMeansModel.load(t_env, path)
    PipelineModel([]).save(str(tmp_path / "pipeline"))
    stage = tmp_path / "pipeline" / "stages" / "0"
    stage.mkdir(parents=True)
    (stage / "metadata.json").write_text('{"format": 1, "class": "os.system", "params": {}}')
    whole = tmp_path / "pipeline" / "metadata.json"
    whole.write_text(whole.read_text().replace('"stages": 0', '"stages": 1'))
    with pytest.raises(InvalidArgument, match=r"unknown class os\.system"):
        PipelineModel.load(t_env, str(tmp_path / "pipeline"))


def test_model_data_can_be_set(t_env):
    model = LogisticRegressionModel().set_model_data(t_env.from_elements([([1.0, -1.0],)], ["coefficient"]))
    assert column(model.transform(samples(t_env, [[2.0, 1.0], [1.0, 2.0]]))[0], "prediction").tolist() == [1.0, 0.0]
    encoder = OneHotEncoderModel().set_input_cols("a").set_output_cols("x")
    with pytest.raises(InvalidArgument, match="model data has no column 'max_indices'"):
        encoder.set_model_data(t_env.from_elements([([1.0],)], ["coefficient"]))
    with pytest.raises(InvalidArgument, match="the OneHotEncoderModel has no model data"):
        encoder.transform(t_env.from_elements([(1,)], ["a"]))


def test_streams_of_vectors_are_tables_of_vectors(env, t_env):
    types = Types.ROW_NAMED(["features", "label"], [DenseVectorTypeInfo(), Types.DOUBLE()])
    stream = env.from_collection([(Vectors.dense(1, 2), 1.0), (Vectors.dense([2, 1]), 0.0)], types)
    model = LogisticRegression().fit(t_env.from_data_stream(stream))
    assert model_data(model)["coefficient"][1] > 0 > model_data(model)["coefficient"][0]


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([([1.0, 2.0], 1.0), ([1.0], 0.0)], r"have sizes 2 and 1|have sizes 1 and 2"),
        ([([float("nan")], 1.0)], "the column 'features' contains NaN or infinity"),
        ([([1.0], float("inf"))], "the column 'label' contains NaN or infinity"),
        ([([1.0], None), ([1.0], 1.0)], "the column 'label' contains NULL"),
        ([(None, 1.0), ([1.0], 1.0)], "the vectors of column 'features' contain NULL"),
        ([([None, 1.0], 1.0)], "the vectors of column 'features' contain NULL"),
        ([([1.0], 2.0)], "a label is 2; hint: use 0.0 and 1.0|a label is 2"),
    ],
)
def test_records_that_cannot_be_learned_from(t_env, rows, message):
    schema = DataTypes.ROW(
        [
            DataTypes.FIELD("features", DataTypes.ARRAY(DataTypes.DOUBLE())),
            DataTypes.FIELD("label", DataTypes.DOUBLE()),
        ]
    )
    table = t_env.from_elements(rows, schema)
    for estimator in (LogisticRegression(), OnlineLogisticRegression().set_global_batch_size(1)):
        with pytest.raises(UserError, match=message):
            estimator.fit(table).get_model_data()[0].to_arrow()


def test_training_without_records_or_without_end(t_env):
    table = samples(t_env, [[1.0]], [1.0])
    nothing = table.filter(table.label > 1)
    for estimator in (LinearRegression(), KMeans(), StandardScaler().set_input_col("features")):
        with pytest.raises(UserError, match="there are no records to train with"):
            estimator.fit(nothing).get_model_data()[0].to_arrow()
    wild = samples(t_env, [[1e200], [2e200]], [1.0, 2.0])
    with pytest.raises(UserError, match="training diverged"):
        LinearRegression().fit(wild).get_model_data()[0].to_arrow()


def test_columns_are_checked_when_the_program_is_built(t_env):
    table = t_env.from_elements([(1.0, "a", [1.0])], ["label", "text", "features"])
    with pytest.raises(InvalidArgument, match="the table has no column 'x'"):
        KMeans().set_features_col("x").fit(table)
    with pytest.raises(InvalidArgument, match=r"'text' has the type .*, which is not a vector"):
        KMeans().set_features_col("text").fit(table)
    with pytest.raises(InvalidArgument, match=r"'text' has the type .*, which is not a number"):
        LogisticRegression().set_label_col("text").fit(table)
    with pytest.raises(InvalidArgument, match="has a column 'label' already"):
        KMeans().fit(table)._copy_params(KMeans().set_prediction_col("label")).transform(table)
    with pytest.raises(InvalidArgumentType, match="hint: pass one Table"):
        KMeans().fit([1, 2])
    with pytest.raises(InvalidArgument, match="no initial model data"):
        OnlineKMeans().fit(table)
    with pytest.raises(InvalidArgument, match="only two classes"):
        LogisticRegression().set_multi_class("multinomial").fit(table)
    with pytest.raises(InvalidArgument, match="1 input columns and 0 output columns"):
        OneHotEncoder().set_input_cols("label").fit(table)
    with pytest.raises(InvalidArgumentType, match="cannot be a stage"):
        PipelineModel([KMeans()])


def test_predicting_with_other_columns_than_in_training(t_env):
    model = KMeans().fit(samples(t_env, [[1.0, 2.0], [3.0, 4.0]]))
    with pytest.raises(UserError, match="have size 1, but the centroids have size 2"):
        model.transform(samples(t_env, [[1.0]]))[0].to_arrow()


def test_random_initial_centroids_depend_on_the_seed(t_env):
    one, again, other = (
        generate_random_model_data(t_env, 2, 3, 1.0, seed).to_arrow().to_pydict() for seed in (1, 1, 2)
    )
    assert one == again != other
    assert np.array(one["centroids"]).shape == (1, 2, 3)


def test_consecutive_rounds_use_all_samples_once():
    features = np.random.default_rng(7).normal(size=(100, 1))
    rows = DenseRows(features)
    positions = np.sort(rows.positions(0))
    everything = Samples(DenseRows(np.arange(100.0)[:, np.newaxis]), np.zeros(100), np.ones(100))
    learner = GradientDescent(SquaredLoss(), 20, 32, 0.1, 0.0, 0.0, 0.0)
    used = np.zeros(100)
    for number in range(25):  # 25 mini-batches of 32 in a hundred are eight times all of them
        sums = learner.train(everything, positions, np.array([number, 100.0, 0.0]))
        assert 15 < sums[0] < 49  # the sum of the weights
        batch = learner._mini_batch(everything, positions, number, 100.0)
        used[batch.rows.values[:, 0].astype(int)] += 1
    assert set(used) == {8.0}
