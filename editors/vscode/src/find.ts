/** Where the program is: named by a setting, in the workspace's environment, or on PATH. */

import * as path from "node:path";

export interface Surroundings {
  /** The setting `tensortrail.path`; "" if it is not set. */
  setting: string;
  /** The folders of the workspace. */
  folders: readonly string[];
  /** The value of PATH. */
  searchPath: string;
  windows: boolean;
  isProgram(file: string): boolean;
}

const ENVIRONMENTS = [".venv", "venv", "env"];

/** The program, or why there is none, in a sentence for people. */
export function findProgram(around: Surroundings): { program: string } | { problem: string } {
  if (around.setting) {
    const named = inFolder(around.setting, around.folders);
    if (around.isProgram(named)) return { program: named };
    return { problem: `tensortrail.path names ${named}, which is no program.` };
  }
  const found = candidates(around).find((file) => around.isProgram(file));
  if (found !== undefined) return { program: found };
  return {
    problem:
      "No tensortrail program was found in the workspace's environment (.venv, venv, env) or on PATH. " +
      "Install it with the extra `editor`, or set tensortrail.path.",
  };
}

function candidates(around: Surroundings): string[] {
  const folders = around.folders.flatMap((folder) =>
    ENVIRONMENTS.map((name) => path.join(folder, name, around.windows ? "Scripts" : "bin")),
  );
  const onPath = around.searchPath.split(around.windows ? ";" : ":").filter(path.isAbsolute);
  const name = around.windows ? "tensortrail.exe" : "tensortrail";
  return [...folders, ...onPath].map((folder) => path.join(folder, name));
}

function inFolder(setting: string, folders: readonly string[]): string {
  const folder = folders[0] ?? "";
  const whole = setting.replace("${workspaceFolder}", folder);
  return path.isAbsolute(whole) ? whole : path.join(folder, whole);
}
