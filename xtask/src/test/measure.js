(() => {
  const wrong = [], say = text => wrong.push(text);
  const rect = e => e.getBoundingClientRect(), seen = e => e.checkVisibility() && rect(e).width > 0;
  const what = e => `${e.tagName.toLowerCase()}.${e.getAttribute("class") || e.id} "${e.textContent.trim().slice(0, 30)}"`;
  const lies = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;

  // Nothing makes the page wider than the screen.
  if (document.documentElement.scrollWidth > innerWidth) say(`the page is ${document.documentElement.scrollWidth} wide, the screen ${innerWidth}`);

  // Boxes lie beside each other, within the picture, and their texts within them and beside each other.
  const boxes = [...document.querySelectorAll(".box")], picture = document.getElementById("picture");
  boxes.forEach((box, i) => {
    const frame = rect(box.querySelector(".frame")), whole = rect(picture);
    if (frame.left < whole.left - 1 || frame.right > whole.right + 1 || frame.top < whole.top - 1) say(`${what(box)} sticks out of the picture`);
    for (const other of boxes.slice(i + 1)) if (lies(frame, rect(other.querySelector(".frame")))) say(`${what(box)} lies on ${what(other)}`);
    const texts = [...box.querySelectorAll("text")].filter(t => t.textContent && seen(t));
    texts.forEach((text, j) => {
      const own = rect(text);
      if (own.left < frame.left || own.right > frame.right || own.top < frame.top - 1 || own.bottom > frame.bottom + 1) say(`${what(text)} leaves its box`);
      for (const other of texts.slice(j + 1)) {
        const a = rect(other);
        if (own.left < a.right && a.left < own.right && own.top + 3 < a.bottom - 3 && a.top + 3 < own.bottom - 3) say(`${what(text)} lies on ${what(other)}`);
      }
    });
  });
  if (picture) for (const text of picture.querySelectorAll("#nucleus text")) {
    const own = rect(text), whole = rect(picture);
    if (own.right > whole.right || own.left < whole.left) say(`${what(text)} sticks out of the picture`);
  }

  // Texts fit into what holds them.
  for (const e of document.querySelectorAll("h1,h2,p,dt,dd,li,a,label,th,td,code")) {
    if (!seen(e) || e.closest(".wide")) continue;
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth) say(`${what(e)} is wider than its place`);
    const own = rect(e);
    if (own.right > innerWidth + 1 || own.left < -1) say(`${what(e)} sticks out`);
  }

  // Colours: text against what is behind it, by the formula of WCAG 2.1; 4.5 is its level AA.
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const colour = (text, under) => {
    canvas.fillStyle = under ? `rgb(${under.join()})` : "#fff", canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = text, canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const light = c => c.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const behind = e => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const fill = at.classList?.contains("box") ? getComputedStyle(at.querySelector(".frame")).fill : at.classList?.contains("again") ? getComputedStyle(at.querySelector("rect")).fill : at.id === "nucleus" && e.matches(".name,.soft:last-child") ? getComputedStyle(at.querySelector("rect")).fill : getComputedStyle(at).backgroundColor;
      layers.push(fill);
    }
    return layers.reverse().reduce((under, layer) => colour(layer, under), [255, 255, 255]);
  };
  for (const e of document.querySelectorAll("text,h1,h2,p,dt,dd,small,li,b,a,label,th,td,code,span,footer")) {
    const own = [...e.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !seen(e)) continue;
    const style = getComputedStyle(e), under = behind(e), found = contrast(colour(e instanceof SVGElement ? style.fill : style.color, under), under);
    if (found < 4.5) say(`${what(e)} has a contrast of ${found.toFixed(1)}`);
  }

  // Whoever does not see it needs a text: names of pictures, heads of tables, a language.
  for (const e of document.querySelectorAll("svg:not([aria-hidden]),.box,[role=img]")) if (!e.closest("[aria-hidden]") && !e.getAttribute("aria-label")) say(`${what(e)} has no name`);
  for (const e of document.querySelectorAll("thead th")) if (e.scope !== "col") say(`${what(e)} is the head of nothing`);
  for (const e of document.querySelectorAll("tbody th")) if (e.scope !== "row") say(`${what(e)} is the head of nothing`);
  if (document.documentElement.lang !== "en" || !document.title) say("no language or title");
  return wrong;
})()
