// What test_browser.py asks a page. Each function returns its findings as lines of text.
window.survey = (() => {
  // Colours are looked at right after a change of scheme.
  const still = new CSSStyleSheet();
  still.replaceSync("*, ::before, ::after, ::placeholder { transition: none !important }");
  document.adoptedStyleSheets.push(still);

  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();

  // Any CSS colour as [red, green, blue, alpha], the first three from 0 to 255.
  function rgba(css) {
    if (!known.has(css)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = css;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(css, [r, g, b, a / 255]);
    }
    return known.get(css);
  }

  const over = ([r, g, b, a], [R, G, B]) =>
    [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const faded = ([r, g, b, a], opacity) => [r, g, b, a * opacity];

  // https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
  function luminance(colour) {
    const [r, g, b] = colour.map((x) => x / 255)
      .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function contrast(one, other) {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  }

  const isVisible = (element) =>
    element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });

  function ancestors(element) {
    const found = [];
    for (let e = element; e; e = e.parentElement) found.push(e);
    return found;
  }

  const opacity = (element) =>
    ancestors(element).reduce((all, e) => all * Number(getComputedStyle(e).opacity), 1);

  // Filled shapes of a drawing that are painted under the middle of a text.
  function shapesUnder(text) {
    const svg = text.closest("svg");
    const box = text.getBoundingClientRect();
    const middle = new DOMPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    return [...svg.querySelectorAll("rect, circle, ellipse, path, polygon")].filter((shape) => {
      const before = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (!before || shape.closest("defs, marker, clipPath, mask, pattern")) return false;
      if (getComputedStyle(shape).fill === "none" || !isVisible(shape)) return false;
      return shape.isPointInFill(middle.matrixTransform(shape.getScreenCTM().inverse()));
    });
  }

  // The colour behind a text; paper is white, and browsers do not print backgrounds.
  function backdrop(element, onPaper) {
    const layers = [];
    if (element.closest("svg")) {
      for (const shape of shapesUnder(element).reverse()) {
        const style = getComputedStyle(shape);
        layers.push(faded(rgba(style.fill), Number(style.fillOpacity) * opacity(shape)));
      }
    }
    if (!onPaper) {
      for (const e of ancestors(element)) {
        const colour = rgba(getComputedStyle(e).backgroundColor);
        if (colour[3] > 0) layers.push(colour);
        if (colour[3] === 1) break;
      }
    }
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]);
  }

  function* texts(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.data.trim()) yield walker.currentNode;
  }

  const name = (element) =>
    element.localName + [...element.classList].slice(0, 2).map((c) => "." + c).join("");
  const hex = (colour) =>
    "#" + colour.slice(0, 3).map((x) => Math.round(x).toString(16).padStart(2, "0")).join("");

  // Texts that are too close to the colour behind them.
  function faint(onPaper) {
    const found = new Map();
    function look(element, text, css) {
      const style = getComputedStyle(element);
      const behind = backdrop(element, onPaper);
      const colour = over(faded(rgba(css), opacity(element)), behind);
      const pixels = parseFloat(style.fontSize);
      const large = pixels >= 24 || (pixels >= 18.66 && Number(style.fontWeight) >= 700);
      const ratio = contrast(colour, behind);
      if (ratio < (large ? 3 : 4.5)) {
        const what = `${name(element)}: ${hex(colour)} on ${hex(behind)}, ${ratio.toFixed(2)}`;
        if (!found.has(what)) found.set(what, text.trim().slice(0, 30));
      }
    }
    const seen = new Set();
    for (const node of texts(document.body)) {
      const element = node.parentElement;
      if (seen.has(element) || element.closest("script, style, noscript, .katex-mathml")) continue;
      seen.add(element);
      if (!isVisible(element)) continue;
      const style = getComputedStyle(element);
      const drawn = element.closest("svg") && !element.closest("foreignObject");
      if (drawn && style.fill === "none") continue;
      look(element, node.data, drawn ? style.fill : style.color);
    }
    for (const input of document.querySelectorAll("input[placeholder]")) {
      if (isVisible(input)) {
        look(input, input.placeholder, getComputedStyle(input, "::placeholder").color);
      }
    }
    return [...found].map(([what, text]) => `${what}: ${text}`);
  }

  // TeX that a reader would see. What is folded away counts, too.
  function rawTex() {
    const not = "pre, code, script, style, noscript, .katex-mathml";
    const tex = /\\[()[\]]|\\[a-zA-Z]+|\$\$|\$[^\s$][^$]*\$/;
    const shown = [...texts(document.body)].filter((node) => !node.parentElement.closest(not));
    const all = [document.title, ...shown.map((node) => node.data)];
    return all.filter((text) => tex.test(text)).map((text) => text.trim().slice(0, 60));
  }

  // What a sheet of paper would cut off, or not show at all.
  function cut() {
    const found = [];
    const article = document.querySelector("article") ?? document.body;
    const edge = article.getBoundingClientRect().right + 1;
    const wide = ".katex-display, .katex .base, pre, pre > code, table, figure, svg, img";
    for (const element of article.querySelectorAll(wide)) {
      if (!isVisible(element)) continue;
      const scrolls = element.matches(".katex-display, pre, pre > code, figure")
        && element.scrollWidth > element.clientWidth + 1;
      const beyond = element.getBoundingClientRect().right - edge;
      if (scrolls || beyond > 0) {
        const by = Math.max(element.scrollWidth - element.clientWidth, beyond).toFixed();
        const formula = element.closest(".katex")?.querySelector("annotation")
          ?? element.querySelector("annotation");
        const text = (formula ?? element).textContent.trim().replace(/\s+/g, " ");
        found.push(`${name(element)} by ${by} px: ${text.slice(0, 60)}`);
      }
    }
    for (const details of article.querySelectorAll("details:not([open])")) {
      found.push(`folded: ${details.querySelector("summary")?.textContent.trim().slice(0, 60)}`);
    }
    return found;
  }

  const PARTS = {
    skip: ".md-skip",
    search: ".md-search__input",
    palette: "[data-md-component=palette] :is(input, label)",
    tab: ".tabbed-set > input, .tabbed-labels :is(label, a)",
    summary: "article summary",
    content: "article a",
    navigation: "nav a",
  };

  // Where the focus is, and whether it has been there before; null where no element has it.
  const visited = new WeakSet();
  function focus() {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    // A hidden button is seen by its label, in this theme the one that follows it.
    const labels = element.matches("input")
      ? [...(element.labels ?? []), element.nextElementSibling] : [];
    const shown = [element, ...labels].filter((e) => {
      if (!e) return false;
      const box = e.getBoundingClientRect();
      return isVisible(e) && box.width >= 1 && box.height >= 1
        && box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight;
    });
    const around = [".md-search__form", ".tabbed-labels"].map((box) =>
      shown.map((e) => e.closest(box)).find(Boolean)).filter(Boolean);
    const outlined = shown.length > 0 && [...shown, ...around].some((e) => {
      const style = getComputedStyle(e);
      return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1
        && rgba(style.outlineColor)[3] > 0;
    });
    const again = visited.has(element);
    visited.add(element);
    return {
      again,
      part: Object.keys(PARTS).find((part) => element.matches(PARTS[part])) ?? "other",
      what: `${name(element)}: ${(element.ariaLabel ?? element.textContent).trim().slice(0, 40)}`,
      outlined,
      shown: shown.length > 0,
    };
  }

  // The timeout is for a browser that shows no frames.
  const nextFrame = () => new Promise((done) => {
    requestAnimationFrame(() => setTimeout(done));
    setTimeout(done, 2000);
  });

  return { nextFrame, faint, rawTex, cut, focus };
})();
