import { useEffect, useState } from "preact/hooks";
import { usePolling } from "../api";
import { formatDuration, formatTime, shortId } from "../format";
import { Empty, Loaded, State, Tile } from "../parts/basics";
import { jobLink } from "../route";
import type { ClusterOverview, JobOverview } from "../types";

const ENDED = ["FINISHED", "CANCELED", "FAILED"];

export function OverviewPage() {
  const cluster = usePolling<ClusterOverview>("overview");
  const jobs = usePolling<{ jobs: JobOverview[] }>("jobs/overview");
  const [search, setSearch] = useState("");
  useEffect(() => {
    document.title = "millstream";
  }, []);
  return (
    <>
      <h1>Overview</h1>
      <Loaded polled={cluster}>
        {(overview) => (
          <dl class="tiles">
            <Tile label="Running" value={String(overview["jobs-running"])} />
            <Tile label="Finished" value={String(overview["jobs-finished"])} />
            <Tile label="Cancelled" value={String(overview["jobs-cancelled"])} />
            <Tile label="Failed" value={String(overview["jobs-failed"])} />
            <Tile
              label="Slots"
              value={String(overview["slots-total"])}
              detail={overview["slots-total"] === 0 ? undefined : `${overview["slots-available"]} free`}
            />
          </dl>
        )}
      </Loaded>
      {cluster.error === null && (
        <Loaded polled={jobs}>
          {({ jobs: all }) => {
            const found = filterJobs(all, search);
            return (
              <>
                <label class="search">
                  <span class="hidden">Search jobs by name, id or state</span>
                  <input
                    type="search"
                    placeholder="Search jobs by name, id or state"
                    value={search}
                    onInput={(event) => setSearch(event.currentTarget.value)}
                  />
                </label>
                <JobTable title="Running jobs" jobs={found.filter((job) => !ENDED.includes(job.state))}>
                  {all.length === 0 ? "Jobs appear here when a program executes them." : "No running job matches."}
                </JobTable>
                <JobTable title="Ended jobs" jobs={found.filter((job) => ENDED.includes(job.state))}>
                  Jobs that finish, fail or are cancelled stay here while the server runs.
                </JobTable>
              </>
            );
          }}
        </Loaded>
      )}
    </>
  );
}

/** The jobs whose name, id or state contains every word of the search, newest first. */
export function filterJobs(jobs: JobOverview[], search: string): JobOverview[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (job: JobOverview) => {
    const text = `${job.name} ${job.jid} ${job.state}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return jobs.filter(matches).sort((one, other) => other["start-time"] - one["start-time"]);
}

function JobTable({ title, jobs, children }: { title: string; jobs: JobOverview[]; children: string }) {
  return (
    <section>
      <h2>
        {title} <span class="count">{jobs.length}</span>
      </h2>
      {jobs.length === 0 ? (
        <Empty title="None">{children}</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">State</th>
                <th scope="col">Started</th>
                <th scope="col" class="number">
                  Duration
                </th>
                <th scope="col" class="number">
                  Subtasks
                </th>
                <th scope="col">Kind</th>
                <th scope="col">Id</th>
              </tr>
            </thead>
            <tbody>
              {jobs.map((job) => (
                <tr key={job.jid}>
                  <td class="wide">
                    <a href={jobLink(job.jid)}>{job.name}</a>
                  </td>
                  <td>
                    <State state={job.state} /> {job.waiting}
                  </td>
                  <td>{formatTime(job["start-time"])}</td>
                  <td class="number">{formatDuration(job.duration)}</td>
                  <td class="number">{job.tasks["total"]}</td>
                  <td>{job["job-type"].toLowerCase()}</td>
                  <td>
                    <code title={job.jid}>{shortId(job.jid)}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
