// The answers of the REST server that the UI reads. Fields that it does not read are left out.

export interface ClusterOverview {
  taskmanagers: number;
  "slots-total": number;
  "slots-available": number;
  "jobs-running": number;
  "jobs-finished": number;
  "jobs-cancelled": number;
  "jobs-failed": number;
}

/** What the web UI may do, by the names of /config; one that is missing is allowed. */
export type Features = Partial<Record<"web-submit" | "web-cancel" | "web-rescale", boolean>>;

export interface JobOverview {
  jid: string;
  name: string;
  "start-time": number;
  "end-time": number;
  duration: number;
  state: string;
  tasks: Record<string, number>;
  "job-type": string;
  /** Why the job cannot start yet. */
  waiting?: string | null;
  /** The program of a session cluster that the job belongs to. */
  "application-id"?: string | null;
}

/** A program of a session cluster. */
export interface Program {
  id: string;
  name: string;
  status: string;
  "start-time": number;
  duration: number;
}

export interface UploadedFile {
  id: string;
  name: string;
  uploaded: number;
}

export interface JobDetails {
  jid: string;
  name: string;
  isStoppable: boolean;
  state: string;
  "job-type": string;
  "start-time": number;
  "end-time": number;
  duration: number;
  now: number;
}

export interface Load {
  recordsIn: number;
  recordsOut: number;
  recordsInPerSecond: number;
  recordsOutPerSecond: number;
  bytesIn: number;
  bytesOut: number;
  busy: number;
  backpressured: number;
  watermark: number;
  stateBytes: number;
}

export interface Operator {
  id: string;
  name: string;
  kind: "source" | "sink" | "operator";
}

export interface Vertex {
  id: string;
  name: string;
  level: number;
  parallelism: number;
  maxParallelism: number;
  operators: Operator[];
  load: Load;
  busiest: number;
  pendingRecords: number | null;
}

export interface Edge {
  source: string;
  target: string;
  partitioner: string;
}

export interface Graph {
  now: number;
  slots: number;
  vertices: Vertex[];
  edges: Edge[];
}

export interface Subtasks {
  subtasks: Load[];
  operators: { id: string; name: string; metrics: Record<string, (number | string | boolean)[]> }[];
  hotKeys: HotKey[];
}

export interface HotKey {
  key: string;
  subtask: number;
  share: number;
}

export interface MetricHistory {
  timestamps: number[];
  vertices: Record<string, Record<string, (number | null)[]>>;
}

export interface Epoch {
  epoch: number;
  time: number;
  duration: number;
  records: number;
  lag: number | null;
  watermark: number;
  vertices: Record<string, { longest: number; subtask: number; average: number }>;
}

export interface Epochs {
  total: number;
  averageDuration: number;
  epochs: Epoch[];
}

export interface Checkpoint {
  id: number;
  status: string;
  is_savepoint: boolean;
  trigger_timestamp: number;
  latest_ack_timestamp: number;
  checkpointed_size: number;
  state_size: number;
  end_to_end_duration: number;
  external_path: string | null;
  failure_message?: string | null;
}

export interface Checkpoints {
  counts: Record<string, number>;
  latest: { restored: { restore_timestamp: number; external_path: string } | null };
  history: Checkpoint[];
}

export interface CheckpointConfiguration {
  mode: string;
  interval: number;
  timeout: number;
  min_pause: number;
  state_backend: string;
  checkpoint_storage: string;
  tolerable_failed_checkpoints: number;
  externalization: { enabled: boolean; delete_on_cancellation: boolean };
}

export interface ExceptionEntry {
  exceptionName: string;
  stacktrace: string;
  timestamp: number;
  taskName: string | null;
}

export interface Exceptions {
  exceptionHistory: { entries: ExceptionEntry[]; truncated: boolean };
}

export interface Option {
  key: string;
  value: string;
  description: string;
  ignored: string | null;
}

export interface Split {
  split: string;
  subtask: number;
  watermark: number | null;
  activeAt: number;
}

export interface SourceSplits {
  operator: string;
  name: string;
  vertex: string;
  total: number;
  splits: Split[];
}

export interface VertexWatermark {
  id: string;
  name: string;
  level: number;
  watermark: number;
  heldBy: { vertex: string; name: string; split: Split | null } | null;
}

export interface Watermarks {
  now: number;
  sources: SourceSplits[];
  vertices: VertexWatermark[];
}

export interface ListedSnapshot {
  name: string;
  kind: "checkpoint" | "savepoint";
  path: string;
  time: number | null;
}

export interface SnapshotOperator {
  id: string;
  name: string;
  uid: string | null;
  parallelism: number;
  bytes: number;
  files: number;
}

export interface Snapshot {
  name: string;
  kind: "checkpoint" | "savepoint";
  path: string;
  checkpoint: number;
  epoch: number;
  time: number;
  form: string | null;
  bytes: number;
  operators: SnapshotOperator[];
}

export interface DescribedState {
  state: string;
  name: string;
  kind: string;
  keyed: boolean;
  keyType: string;
  valueType: string;
  ttl: boolean;
  entries: number | null;
}

export interface OperatorStates {
  states: DescribedState[];
  complete: boolean;
}

export interface StateEntry {
  subtask: number;
  window: string | null;
  key: string | null;
  value: string;
  updated: number | null;
}

export interface StatePage {
  entries: StateEntry[];
  next: string | null;
  scanned: number;
}

export interface ComparedState {
  state: string;
  name: string;
  before: number | null;
  after: number | null;
  added: number | null;
  removed: number | null;
  changed: number | null;
}

export interface ComparedOperator {
  id: string;
  name: string;
  bytesBefore: number | null;
  bytesAfter: number | null;
  states: ComparedState[];
}

export interface Comparison {
  before: string;
  after: string;
  operators: ComparedOperator[];
  complete: boolean;
}

export interface FlameNode {
  name: string;
  value: number;
  children: FlameNode[];
}

export interface FlameAnswer {
  endTimestamp: number;
  data: FlameNode | null;
}

export interface Dropped {
  operator: string;
  time: number;
  reason: string;
  key: string | null;
  value: string;
}

export interface Line {
  number: number;
  time: number;
  level: string;
  source: string;
  text: string;
}
