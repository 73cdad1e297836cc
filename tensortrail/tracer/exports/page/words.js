// Numbers and text as people read them.

// Characters that cannot be seen, or that turn the text around them, are spelled out.
const HIDDEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const spelled = (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`;

function seen(text, keep = "") {
  return String(text).replace(HIDDEN, (sign) => (keep.includes(sign) ? sign : spelled(sign)));
}

function size(bytes) {
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (bytes < 1000) return unit === "B" ? `${Math.round(bytes)} B` : `${bytes.toFixed(1)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toFixed(1)} TB`;
}

function count(number, one, several = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : several}`;
}

function duration(seconds) {
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(seconds < 0.01 ? 2 : 1)} ms`;
  if (seconds < 60) return `${seconds.toFixed(2)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// A point in time: to the millisecond in long runs too.
function moment(seconds) {
  return seconds < 60 ? duration(seconds) : clock(seconds, 3);
}

function clock(seconds, decimals) {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = (seconds % 60).toFixed(decimals).padStart(decimals ? decimals + 3 : 2, "0");
  return `${hours ? `${hours}:${String(minutes).padStart(2, "0")}` : minutes}:${rest}`;
}

// As a mark on an axis whose marks are that far apart.
function mark(seconds, apart) {
  const decimals = Math.max(0, -Math.floor(Math.log10(apart) + 1e-9));
  if (seconds >= 60) return clock(seconds, decimals);
  if (seconds < apart / 2) return "0";
  return seconds < 1 ? `${(seconds * 1e3).toFixed(Math.max(decimals - 3, 0))} ms` : `${seconds.toFixed(decimals)} s`;
}

// The part of a path that tells: libraries from their package on, the rest from the folder of the run.
function shortened(file, folder) {
  const library = file.match(/(?:site|dist)-packages[\\/](.*)$/);
  if (library) return library[1];
  return folder && file.startsWith(`${folder}/`) ? file.slice(folder.length + 1) : file;
}

// Round distances for an axis of that length with about so many marks.
function steps(length, marks) {
  const rough = length / marks || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => each * power >= rough);
}
