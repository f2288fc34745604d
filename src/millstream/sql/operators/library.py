"""The list of the specs of all SQL operators.

Promises: every spec of this package is listed, so that compiled plans can be decoded; a test checks it.
Does not know: what operators do."""

from __future__ import annotations

from millstream.sql.operators.aggregate.group_aggregate import GroupAggregateSpec
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateSpec
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.operators.changelog.changelog_normalize import ChangelogNormalizeSpec
from millstream.sql.operators.changelog.changelog_rows import FromChangelogSpec, SetRowKindSpec, ToChangelogSpec
from millstream.sql.operators.changelog.conflicts import ConflictSpec
from millstream.sql.operators.changelog.constraints import ConstraintSpec
from millstream.sql.operators.changelog.sets import SetSpec
from millstream.sql.operators.changelog.upsert_materializer import UpsertMaterializeSpec, UpsertsSpec
from millstream.sql.operators.enter import EnterSpec
from millstream.sql.operators.expand import CorrelateSpec, ExpandSpec
from millstream.sql.operators.join.lookup_join import LookupJoinSpec
from millstream.sql.operators.join.regular_join import JoinSpec
from millstream.sql.operators.join.time_joins import IntervalJoinSpec, TemporalJoinSpec
from millstream.sql.operators.join.window_tables import WindowJoinSpec, WindowRankSpec
from millstream.sql.operators.over.changing_over import ChangingOverSpec
from millstream.sql.operators.over.final_over import FinalOverSpec
from millstream.sql.operators.over.over_aggregate import OverSpec
from millstream.sql.operators.pattern.stamp import StampSpec
from millstream.sql.operators.process_table import ProcessTableSpec
from millstream.sql.operators.rank.local_rank import LocalRankSpec
from millstream.sql.operators.rank.sort import MaterializeSpec, SortSpec
from millstream.sql.operators.rank.top_n import DeduplicateSpec, RankSpec
from millstream.sql.operators.spec import SqlOperatorSpec
from millstream.sql.operators.watermark import WatermarkSpec
from millstream.sql.operators.window.count_windows import CountWindowAggregateSpec
from millstream.sql.operators.window.local_sessions import LocalSessionAggregateSpec
from millstream.sql.operators.window.local_windows import LocalWindowAggregateSpec
from millstream.sql.operators.window.session_aggregate import SessionAggregateSpec
from millstream.sql.operators.window.sliced_windows import SlicedWindowAggregateSpec
from millstream.sql.operators.window.window_aggregate import WindowAggregateSpec, WindowTableSpec

OPERATOR_SPECS: tuple[type[SqlOperatorSpec], ...] = (
    CalcSpec,
    ChangelogNormalizeSpec,
    ChangingOverSpec,
    ConflictSpec,
    ConstraintSpec,
    CorrelateSpec,
    CountWindowAggregateSpec,
    DeduplicateSpec,
    EnterSpec,
    ExpandSpec,
    FinalOverSpec,
    FromChangelogSpec,
    GroupAggregateSpec,
    IntervalJoinSpec,
    JoinSpec,
    LocalAggregateSpec,
    LocalRankSpec,
    LocalSessionAggregateSpec,
    LocalWindowAggregateSpec,
    LookupJoinSpec,
    MaterializeSpec,
    OverSpec,
    ProcessTableSpec,
    RankSpec,
    SessionAggregateSpec,
    SetRowKindSpec,
    SetSpec,
    SlicedWindowAggregateSpec,
    SortSpec,
    StampSpec,
    TemporalJoinSpec,
    ToChangelogSpec,
    UpsertMaterializeSpec,
    UpsertsSpec,
    WatermarkSpec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowRankSpec,
    WindowTableSpec,
)
