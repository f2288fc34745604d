import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { TOKEN, useResource } from "./api";
import { JobPage } from "./pages/job";
import { OverviewPage } from "./pages/overview";
import { ProgramsPage } from "./pages/programs";
import { Empty } from "./parts/basics";
import { type Route, useRoute } from "./route";
import type { Features } from "./types";
import icon from "./icon.svg";

type Theme = "light" | "dark";

const PLACES = { jobs: "Jobs", programs: "Programs", sql: "SQL" };

export function App() {
  const route = useRoute();
  const configuration = useResource<{ features: Features }>("config");
  useEffect(() => {
    addEventListener(TOKEN, configuration.reload);
    return () => removeEventListener(TOKEN, configuration.reload);
  }, [configuration.reload]);
  const features = configuration.data?.features ?? {};
  const isSession = features["web-submit"] ?? route.place === "programs";
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to content
      </a>
      <header class="bar">
        <a class="brand" href="#/" aria-label="millstream: overview of all jobs">
          <img src={icon} alt="" width="24" height="24" />
          <span>millstream</span>
        </a>
        <nav class="places" aria-label="Places">
          {(["jobs", "programs", "sql"] as const)
            .filter((place) => place !== "programs" || isSession)
            .map((place) => (
              <a key={place} href={place === "jobs" ? "#/" : `#/${place}`} aria-current={route.place === place ? "page" : undefined}>
                {PLACES[place]}
              </a>
            ))}
        </nav>
        <span class="spacer" />
        <ThemeButton />
      </header>
      <main id="main" tabIndex={-1}>
        <Page route={route} isSession={isSession} features={features} />
      </main>
    </>
  );
}

function Page({ route, isSession, features }: { route: Route; isSession: boolean; features: Features }) {
  if (route.place === "sql") return <SqlPage />;
  if (route.place === "programs") return <ProgramsPage key={route.selected} savepoint={route.selected} features={features} />;
  if (route.job === null) return <OverviewPage />;
  return <JobPage key={route.job} job={route.job} route={route} isSession={isSession} features={features} />;
}

/** The SQL workspace, whose editor is loaded when it is first shown. */
function SqlPage() {
  const [Loaded, setLoaded] = useState<ComponentType | null>(null);
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    import("./pages/sql").then(
      (module) => setLoaded(() => module.SqlPage),
      () => setMissing(true),
    );
  }, []);
  if (isMissing) return <Empty title="The editor could not be loaded">Load the page again.</Empty>;
  return Loaded === null ? <p class="loading">Loading…</p> : <Loaded />;
}

function focusMain(event: Event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(initialTheme);
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const other: Theme = theme === "dark" ? "light" : "dark";
  const change = () => {
    localStorage.setItem("theme", other);
    setTheme(other);
  };
  return (
    <button class="quiet" onClick={change} aria-label={`Use the ${other} theme`}>
      {theme === "dark" ? "☀ Light" : "☾ Dark"}
    </button>
  );
}

function initialTheme(): Theme {
  const stored = localStorage.getItem("theme");
  if (stored === "light" || stored === "dark") return stored;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
