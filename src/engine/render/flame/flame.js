(function () {
  "use strict";
  // Zoom by a click, search by Ctrl-F or /, back by Escape. Numbers are in the frames' data attributes.
  var svg = document.querySelector("svg.flame");
  var width = Number(svg.getAttribute("data-width")), left = Number(svg.getAttribute("data-left"));
  var letter = Number(svg.getAttribute("data-letter"));
  var frames = Array.prototype.map.call(svg.querySelectorAll("g.f"), function (g) {
    return {
      g: g, rect: g.querySelector("rect"), text: g.querySelector("text"), name: g.getAttribute("data-name"),
      from: Number(g.getAttribute("data-from")), share: Number(g.getAttribute("data-share")),
      depth: Number(g.getAttribute("data-depth"))
    };
  });
  var status = svg.querySelector(".status"), nothing = 1e-9;

  function label(frame, wide) {
    var fits = Math.floor((wide - 6) / letter);
    if (fits < 3) { return ""; }
    return frame.name.length <= fits ? frame.name : frame.name.slice(0, fits - 2) + "..";
  }

  function zoom(to) {
    frames.forEach(function (frame) {
      var isBelow = frame.depth < to.depth && frame.from <= to.from + nothing &&
        frame.from + frame.share >= to.from + to.share - nothing;
      var inside = frame.depth >= to.depth && frame.from >= to.from - nothing &&
        frame.from + frame.share <= to.from + to.share + nothing;
      frame.g.style.display = isBelow || inside ? "" : "none";
      frame.g.classList.toggle("below", isBelow);
      var x = isBelow ? 0 : (frame.from - to.from) / to.share * width;
      var wide = isBelow ? width : frame.share / to.share * width;
      frame.rect.setAttribute("x", left + x);
      frame.rect.setAttribute("width", Math.max(wide, 0.2));
      frame.text.setAttribute("x", left + x + 3);
      frame.text.textContent = label(frame, wide);
    });
  }

  function search(text) {
    var pattern = null, matched = 0, end = -1;
    if (text) {
      try { pattern = new RegExp(text, "i"); } catch (e) { pattern = null; }
    }
    frames.forEach(function (frame) {
      var lower = frame.name.toLowerCase();
      var hit = Boolean(text) && (pattern ? pattern.test(frame.name) : lower.indexOf(text.toLowerCase()) >= 0);
      frame.g.classList.toggle("hit", hit);
      // Frames come callers first: what is inside a hit counts once.
      if (hit && frame.from >= end - nothing) {
        matched += frame.share;
        end = frame.from + frame.share;
      }
    });
    status.textContent = text ? "matched: " + (100 * matched).toFixed(1) + " %" : "";
  }

  function ask() {
    var text = window.prompt("Search functions (regular expression):", "");
    if (text !== null) { search(text); }
  }

  frames.forEach(function (frame) {
    frame.g.addEventListener("click", function () { zoom(frame); });
  });
  svg.querySelector(".search").addEventListener("click", ask);
  svg.querySelector(".reset").addEventListener("click", function () { zoom(frames[0]); search(""); });
  window.addEventListener("keydown", function (event) {
    if (event.key === "/" || ((event.ctrlKey || event.metaKey) && event.key === "f")) {
      event.preventDefault();
      ask();
    } else if (event.key === "Escape") {
      zoom(frames[0]);
      search("");
    }
  });
})();
