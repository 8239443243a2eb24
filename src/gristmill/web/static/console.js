// Everything that the console does in the browser; each page works without it as far as links and forms go.
import "./look.js";
import "./live.js";
import "./dialogs.js";
import "./toasts.js";
import "./keys.js";
import "./palette.js";
import "./order.js";
import { tell_times } from "./times.js";

tell_times();
