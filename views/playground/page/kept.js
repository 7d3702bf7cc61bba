// What outlives a reload, in a tab that may keep something.

const OURS = "closlab.playground";

export const keep = (name, value) => {
  try {
    localStorage.setItem(`${OURS}.${name}`, JSON.stringify(value));
  } catch {}
};

export const kept = (name, otherwise) => {
  try {
    return JSON.parse(localStorage.getItem(`${OURS}.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
};
