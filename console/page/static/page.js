// Says that the console does not answer any more, and that it does again.
"use strict";

const lost = document.getElementById("lost");

document.addEventListener("htmx:error", () => { lost.hidden = false; });
document.addEventListener("htmx:response:error", () => { lost.hidden = false; });
document.addEventListener("htmx:after:request", (event) => {
  if (event.detail.ctx.response.status < 400) { lost.hidden = true; }
});
