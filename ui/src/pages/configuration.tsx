import { useState } from "preact/hooks";
import { usePolling } from "../api";
import { Empty, Loaded } from "../parts/basics";
import type { Option } from "../types";

export function ConfigurationPage({ job }: { job: string }) {
  const options = usePolling<Option[]>(`jobs/${job}/millstream/options`, 60_000);
  const [search, setSearch] = useState("");
  return (
    <Loaded polled={options}>
      {(all) => {
        const word = search.trim().toLowerCase();
        const found = all.filter((option) => `${option.key} ${option.value}`.toLowerCase().includes(word));
        const ignored = found.filter((option) => option.ignored !== null);
        return (
          <>
            <label class="search">
              <span class="hidden">Search options</span>
              <input
                type="search"
                placeholder="Search options"
                value={search}
                onInput={(event) => setSearch(event.currentTarget.value)}
              />
            </label>
            {ignored.length > 0 && <OptionTable title="Without effect" options={ignored} />}
            <OptionTable title="Set" options={found.filter((option) => option.ignored === null)} />
            <p class="facts">Options that are not listed have their defaults. Values that may be secrets are hidden.</p>
          </>
        );
      }}
    </Loaded>
  );
}

function OptionTable({ title, options }: { title: string; options: Option[] }) {
  return (
    <section>
      <h2>
        {title} <span class="count">{options.length}</span>
      </h2>
      {options.length === 0 ? (
        <Empty title="None" />
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Options">
          <table>
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Value</th>
                <th scope="col">{title === "Set" ? "Meaning" : "Reason"}</th>
              </tr>
            </thead>
            <tbody>
              {options.map((option) => (
                <tr key={option.key}>
                  <td>
                    <code>{option.key}</code>
                  </td>
                  <td class="wide">
                    <code>{option.value}</code>
                  </td>
                  <td class="wide">{option.ignored ?? option.description}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
