import { expect, test } from "vitest";
import { exceptAddress } from "../src/lib/networks";

const holds = (network: string, address: string) => {
  const condition = exceptAddress("ip", network)!;
  const regex = /^ip!~\/(.*)\/$/.exec(condition);
  return regex ? new RegExp(regex[1]!).test(address) : condition === `ip!=${address}`;
};

test("networks hold their addresses, and no others", () => {
  for (const [network, inside, outside] of [
    ["203.0.113.7", ["203.0.113.7"], ["203.0.113.70"]],
    ["203.0.113.0/24", ["203.0.113.0", "203.0.113.255"], ["203.0.114.1", "203.0.1130.1", "1203.0.113.1"]],
    ["203.0.113.64/26", ["203.0.113.64", "203.0.113.127"], ["203.0.113.6", "203.0.113.63", "203.0.113.128"]],
    ["10.16.0.0/12", ["10.16.0.1", "10.31.255.255"], ["10.15.0.1", "10.32.0.1", "10.160.0.1"]],
    ["10.0.0.0/8", ["10.1.2.3"], ["110.1.2.3", "100.1.2.3"]],
    ["203.0.113.7/32", ["203.0.113.7"], ["203.0.113.70"]],
    ["2001:db8::/32", ["2001:db8:1::1"], ["2001:db80:1::1"]],
  ] as [string, string[], string[]][]) {
    for (const address of inside) expect(holds(network, address), `${network} ${address}`).toBe(true);
    for (const address of outside) expect(holds(network, address), `${network} ${address}`).toBe(false);
  }
});

test("what is no address is said", () => {
  for (const text of [
    "",
    "me",
    "203.0.113",
    "203.0.113.0/33",
    "203.0.113.0/",
    "300.1.1.1",
    "1.2.3.4/8/9",
    "::/0",
  ])
    expect(exceptAddress("ip", text), text).toBe(null);
  expect(exceptAddress("ip", "::1")).toBe('ip!="::1"');
});
