import { useEffect, useState } from "preact/hooks";
import { JobPage } from "./pages/job";
import { OverviewPage } from "./pages/overview";
import { useRoute } from "./route";
import icon from "./icon.svg";

type Theme = "light" | "dark";

export function App() {
  const route = useRoute();
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
        <span class="spacer" />
        <ThemeButton />
      </header>
      <main id="main" tabIndex={-1}>
        {route.job === null ? <OverviewPage /> : <JobPage key={route.job} job={route.job} route={route} />}
      </main>
    </>
  );
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
