// How what moves in a drawing of a fabric looks, by digits of 0 to 35: b how busy (a class of 0 to 4),
// p how long paused, q how much waits. The attributes that change, and their values.
const looks = {
  b: (digit, shape) => shape.tagName === "line"
    ? [["stroke", `var(--busy${digit})`], ["stroke-width", [1, 1.6, 2.2, 2.8, 3.4][digit]]]
    : [["fill", `var(--busy${digit})`]],
  p: (digit, shape) => shape.tagName === "circle"
    ? [["r", digit ? 2 + digit / 10 : 0]]
    : [["fill", digit ? "var(--pause)" : "var(--track)"], ["fill-opacity", digit ? 0.25 + digit / 47 : 1]],
  q: (digit) => {
    const side = digit ? 3 + 9 * Math.sqrt(digit / 35) : 0;
    return [["width", side], ["height", side], ["transform", `translate(${-side / 2} ${-side / 2})`]];
  },
};
