import { useEffect, useRef } from "preact/hooks";
import { usePolling } from "../api";
import { formatDuration, formatTime, shortId } from "../format";
import { Actions } from "../parts/actions";
import { Loaded, State } from "../parts/basics";
import { type Route, TABS, type Tab, jobLink } from "../route";
import type { Features, Graph, JobDetails } from "../types";
import { CheckpointsPage } from "./checkpoints";
import { ConfigurationPage } from "./configuration";
import { EpochsPage } from "./epochs";
import { ExceptionsPage } from "./exceptions";
import { GraphPage } from "./graph";
import { LogPage } from "./log";
import { StatePage } from "./state";
import { WatermarksPage } from "./watermarks";

export function JobPage(props: { job: string; route: Route; isSession: boolean; features: Features }) {
  const { job, route, isSession, features } = props;
  const details = usePolling<JobDetails>(`jobs/${job}`);
  const graph = usePolling<Graph>(`jobs/${job}/millstream/graph`);
  const name = details.data?.name;
  useEffect(() => {
    if (name !== undefined) document.title = `${name} · millstream`;
  }, [name]);
  return (
    <Loaded polled={details}>
      {(shown) => (
        <>
          <nav class="crumbs" aria-label="Breadcrumb">
            <a href="#/">Overview</a> <span aria-hidden="true">/</span> <code>{shortId(job)}</code>
          </nav>
          <div class="title">
            <div>
              <h1>{shown.name}</h1>
              <p class="facts">
                <State state={shown.state} /> {shown["job-type"].toLowerCase()} job, started{" "}
                {formatTime(shown["start-time"])}, {shown["end-time"] < 0 ? "running for" : "ran for"}{" "}
                {formatDuration(shown.duration)}
              </p>
            </div>
            <Actions job={shown} graph={graph.data} isSession={isSession} features={features} onDone={details.reload} />
          </div>
          <Tabs job={job} current={route.tab} />
          {route.tab === "graph" && <GraphPage job={job} polled={graph} selected={route.selected} />}
          {route.tab === "checkpoints" && <CheckpointsPage job={job} isSession={isSession} />}
          {route.tab === "state" && <StatePage job={job} selected={route.selected} />}
          {route.tab === "epochs" && <EpochsPage job={job} graph={graph.data} />}
          {route.tab === "watermarks" && <WatermarksPage job={job} />}
          {route.tab === "exceptions" && <ExceptionsPage job={job} />}
          {route.tab === "log" && <LogPage job={job} />}
          {route.tab === "configuration" && <ConfigurationPage job={job} />}
        </>
      )}
    </Loaded>
  );
}

function Tabs({ job, current }: { job: string; current: Tab }) {
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    const tab = bar.current!.querySelector<HTMLElement>("[aria-current]"); // it may be outside of a narrow screen
    if (tab !== null) bar.current!.scrollLeft = tab.offsetLeft - (bar.current!.clientWidth - tab.clientWidth) / 2;
  }, [current]);
  return (
    <nav class="tabs" aria-label="Pages of the job" ref={bar}>
      {TABS.map((tab) => (
        <a key={tab} href={jobLink(job, tab)} aria-current={tab === current ? "page" : undefined}>
          {tab[0]!.toUpperCase() + tab.slice(1)}
        </a>
      ))}
    </nav>
  );
}
