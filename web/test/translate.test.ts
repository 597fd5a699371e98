import { expect, test } from "vitest";
import { logqlOf } from "../src/lib/translate";

test.each([
  ["level=error app=shop", '{app="shop"} | detected_level="error"'],
  ['timeout of "pay" status>=500', '{} |= "timeout of" |= "pay" | status >= 500'],
  ["level>=error", '{} | detected_level=~"error|critical|fatal"'],
  ["level<warn", '{} | detected_level=~"trace|debug|info"'],
  ["", "{}"],
  ["*", "{}"],
  ["a OR b", '{} |= "a" or "b"'],
  ["a AND b", '{} |= "a" |= "b"'],
  ["timeout OR /conn.* refused/i", '{} |~ "timeout|(?:(?i)conn.* refused)"'],
  ["NOT timeout", '{} != "timeout"'],
  ["NOT (a OR b)", '{} != "a" != "b"'],
  ["/a\\d+/i", '{} |~ "(?i)a\\\\d+"'],
  ["NOT /a\\d+/", '{} !~ "a\\\\d+"'],
  ["app=shop OR app=pay", '{} | app="shop" or app="pay"'],
  ["NOT (app=shop OR level=error)", '{app!="shop"} | detected_level!="error"'],
  ["(app=shop OR status>=500) level=error", '{} | app="shop" or status >= 500 | detected_level="error"'],
  ["app=shop OR (status>=500 level=error)", '{} | app="shop" or (status >= 500 and detected_level="error")'],
  ["NOT status>=500", '{} | status < 500 or status=""'],
  ["path~/^.api/", '{} | path =~ ".*(^.api).*"'],
  ['path:"/a.b"', '{} | path =~ "(?s).*/a\\\\.b.*"'],
  ["NOT app:*", '{app=""}'],
])("%s", (query, wanted) => expect(logqlOf(query)).toBe(wanted));

test.each(["a OR app=x", "NOT (a AND b)", "(a", "a)", "()", "NOT *", "level>=wran", "ms>=abc"])(
  "%s has no counterpart",
  (query) => expect(logqlOf(query)).toBe(null),
);
