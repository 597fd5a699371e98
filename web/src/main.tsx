import { render } from "preact";
import "./style.css";
import "./ui/theme";
import { App } from "./ui/app";

render(<App />, document.getElementById("app")!);
