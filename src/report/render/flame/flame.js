(function () {
  "use strict";
  // Zoom by a click, search by Ctrl-F or /, back by Escape; arrow keys select a frame, Enter zooms to it. Numbers are
  // in the frames' data attributes.
  var svg = document.querySelector("svg.flame");
  // In a figure of a larger page, whose keys belong to others, too, and whose width is not ours.
  var figure = svg.parentNode.classList && svg.parentNode.classList.contains("flame") ? svg.parentNode : null;
  var around = figure || svg;
  var width = Number(svg.getAttribute("data-width")), left = Number(svg.getAttribute("data-left"));
  var letter = Number(svg.getAttribute("data-letter"));
  var frames = Array.prototype.map.call(svg.querySelectorAll("g.f"), function (g) {
    return {
      g: g, rect: g.querySelector("rect"), text: g.querySelector("text"), name: g.getAttribute("data-name"),
      from: Number(g.getAttribute("data-from")), share: Number(g.getAttribute("data-share")),
      depth: Number(g.getAttribute("data-depth"))
    };
  });
  var status = around.querySelector(".status"), details = around.querySelector(".selected"), nothing = 1e-9;
  var zoomed = frames[0], selected = null;

  function label(frame, wide) {
    var fits = Math.floor((wide - 6) / letter);
    if (fits < 3) { return ""; }
    return frame.name.length <= fits ? frame.name : frame.name.slice(0, fits - 2) + "..";
  }

  function holds(outer, inner) {
    return outer.from <= inner.from + nothing && outer.from + outer.share >= inner.from + inner.share - nothing;
  }

  function zoom(to) {
    zoomed = to;
    frames.forEach(function (frame) {
      var isBelow = frame.depth < to.depth && holds(frame, to);
      var inside = frame.depth >= to.depth && holds(to, frame);
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

  function select(frame) {
    if (selected) { selected.g.classList.remove("selected"); }
    selected = frame;
    frame.g.classList.add("selected");
    if (details) { details.textContent = frame.g.querySelector("title").textContent; }
  }

  // The frame next to the selected one: up to what it calls, down to its caller, left and right along its row.
  function next(key) {
    var at = selected;
    var row = frames.filter(function (frame) {
      var depth = at.depth + (key === "ArrowUp" ? 1 : key === "ArrowDown" ? -1 : 0);
      return frame.depth === depth && frame.g.style.display !== "none";
    });
    if (key === "ArrowDown") { return row.filter(function (frame) { return holds(frame, at); })[0]; }
    if (key === "ArrowUp") {
      return row.filter(function (frame) { return holds(at, frame); })
        .sort(function (a, b) { return b.share - a.share; })[0];
    }
    return row[row.indexOf(at) + (key === "ArrowLeft" ? -1 : 1)];
  }

  frames.forEach(function (frame) {
    frame.g.addEventListener("click", function () { select(frame); zoom(frame); });
  });
  around.querySelector(".search").addEventListener("click", ask);
  around.querySelector(".reset").addEventListener("click", function () { zoom(frames[0]); search(""); });
  (figure ? svg : window).addEventListener("keydown", function (event) {
    if (!frames.length) { return; }
    if (event.key === "/" || ((event.ctrlKey || event.metaKey) && event.key === "f")) {
      event.preventDefault();
      ask();
    } else if (event.key === "Escape") {
      zoom(frames[0]);
      search("");
    } else if (event.key.indexOf("Arrow") === 0 && (figure || selected)) {
      event.preventDefault();
      var to = selected ? next(event.key) : zoomed;
      if (to) { select(to); }
    } else if (event.key === "Enter" && selected) {
      zoom(selected);
    }
  });

  function fit() {
    var room = figure.clientWidth;
    if (!room || !frames.length) { return; }
    width = room - 2 * left;
    svg.setAttribute("width", room);
    svg.setAttribute("viewBox", "0 0 " + room + " " + svg.getAttribute("height"));
    zoom(zoomed);
  }

  if (figure) {
    left = 0;
    fit();
    window.addEventListener("resize", fit);
  }
})();
