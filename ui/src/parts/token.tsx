// The form that asks for the token of a protected server.

import { useState } from "preact/hooks";
import { setToken } from "../api";

export function TokenForm({ onDone }: { onDone: () => void }) {
  const [text, setText] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    setToken(text.trim());
    onDone();
  };
  return (
    <form class="panel token" onSubmit={submit}>
      <h1>This server needs a token</h1>
      <p>
        It is in the file that the option <code>millstream.rest.token-file</code> names. The browser keeps it until this
        tab is closed.
      </p>
      <label>
        Token
        <input
          type="password"
          autocomplete="off"
          required
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <div class="buttons">
        <button class="primary">Continue</button>
      </div>
    </form>
  );
}
