// Only adds to a page that is complete without it: values under the pointer, a slider,
// sorting, a choice of charts. It reads the JSON block, and touches nothing outside.
(function () {
  "use strict";
  var data;
  try {
    data = JSON.parse(document.getElementById("caveat-data").textContent);
  } catch (error) {
    return; // the static page stays as it is
  }

  function each(list, work) {
    Array.prototype.forEach.call(list, work);
  }

  // Links within the page: in the frame of a notebook they would lead out of it.
  each(document.querySelectorAll('a[href^="#"]'), function (link) {
    link.addEventListener("click", function (event) {
      var target = document.getElementById(link.getAttribute("href").slice(1));
      event.preventDefault();
      target.setAttribute("tabindex", "-1");
      target.scrollIntoView();
      target.focus({ preventScroll: true });
    });
  });

  // Values under the pointer, or at the keys, of a chart.
  var tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.appendChild(tip);

  function place(x, y) {
    var box = tip.getBoundingClientRect();
    var left = Math.min(x + 14, window.innerWidth - box.width - 8);
    var top = y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18;
    tip.style.transform = "translate(" + Math.max(left, 8) + "px," + Math.max(top, 4) + "px)";
  }

  function hide() {
    tip.hidden = true;
    each(document.querySelectorAll(".hits .on"), function (hit) {
      hit.classList.remove("on");
    });
  }

  function show(hit, x, y) {
    hide();
    if (!hit.dataset.tip) return;
    tip.textContent = hit.dataset.tip;
    tip.hidden = false;
    hit.classList.add("on");
    if (x === undefined) {
      var box = hit.getBoundingClientRect();
      x = box.left + box.width / 2;
      y = box.top + box.height / 2;
    }
    place(x, y);
  }

  each(document.querySelectorAll("svg.chart"), function (chart) {
    var hits = chart.querySelectorAll(".hits path");
    var at = -1;
    if (!hits.length) return;
    each(hits, function (hit) {
      var title = hit.querySelector("title");
      if (title) {
        hit.dataset.tip = title.textContent;
        hit.removeChild(title); // else the browser shows it a second time
      }
    });
    var name = chart.querySelector("title");
    if (name) {
      chart.setAttribute("aria-label", name.textContent + ". Arrow keys read the values.");
      chart.removeAttribute("aria-labelledby");
      name.parentNode.removeChild(name);
    }
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("pointermove", function (event) {
      var hit = event.target.closest ? event.target.closest(".hits path") : null;
      if (hit) show(hit, event.clientX, event.clientY);
      else hide();
    });
    chart.addEventListener("pointerleave", hide);
    chart.addEventListener("blur", hide);
    chart.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      at = Math.max(0, Math.min(hits.length - 1, at + step));
      show(hits[at]);
    });
  });

  // The slider on the curve of deferral.
  var slider = document.getElementById("defer");
  var curve = document.getElementById("chart-deferral");
  if (slider && curve && data.deferral) {
    var frame = curve.dataset.frame.split(" ").map(Number);
    var scale = curve.dataset.scale.split(" ").map(Number);
    var marker = curve.querySelector(".marker");
    var move = function () {
      var k = Number(slider.value);
      var found = data.deferral;
      var share = (found.share[k] - scale[0]) / (scale[1] - scale[0]);
      var risk = (found.risk[k] - scale[2]) / (scale[3] - scale[2]);
      var x = frame[0] + share * (frame[1] - frame[0]);
      var y = frame[3] - risk * (frame[3] - frame[2]);
      marker.setAttribute("transform", "translate(" + x.toFixed(1) + " 0)");
      marker.querySelector("circle").setAttribute("cy", y.toFixed(1));
      var asked = (100 * found.share[k]).toFixed(1) + " %";
      document.getElementById("defer-share").textContent = asked;
      slider.setAttribute("aria-valuetext", asked);
      document.getElementById("defer-text").textContent =
        found.rows[k].toLocaleString("en") + (found.rows[k] === 1 ? " row" : " rows") +
        " to a person; " + found.words + " of the rest " + found.shown[k] +
        " instead of " + found.before + ".";
    };
    slider.addEventListener("input", move);
    slider.closest(".slider").hidden = false;
    move();
  }

  // Tables that can be sorted: a button below each heading.
  each(document.querySelectorAll("table[data-sortable]"), function (table) {
    var heads = table.tHead.rows[0].cells;
    var body = table.tBodies[0];
    each(heads, function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-label", "Sort by " + head.textContent);
      head.appendChild(button);
      button.addEventListener("click", function () {
        var up = head.getAttribute("aria-sort") === "descending";
        var rows = Array.prototype.slice.call(body.rows);
        var number = rows.every(function (row) {
          return !isNaN(parse(row, column)) || row.cells[column].dataset.v === "nan";
        });
        rows.sort(function (a, b) {
          var one = number ? parse(a, column) : a.cells[column].dataset.v || "";
          var two = number ? parse(b, column) : b.cells[column].dataset.v || "";
          if (number && (isNaN(one) || isNaN(two))) {
            return (isNaN(one) ? 1 : 0) - (isNaN(two) ? 1 : 0); // unknown ones last
          }
          var order = number ? one - two : one.localeCompare(two);
          return up ? order : -order;
        });
        each(heads, function (other) {
          other.removeAttribute("aria-sort");
        });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        rows.forEach(function (row) {
          body.appendChild(row);
        });
      });
    });
  });

  function parse(row, column) {
    var key = row.cells[column].dataset.v;
    if (key === "inf") return Infinity;
    if (key === "-inf") return -Infinity;
    return key === "" || key === undefined ? NaN : Number(key);
  }

  // One of the charts of rows, by choice; without this script all of them are there.
  var choice = document.getElementById("along");
  if (choice) {
    var panels = document.querySelectorAll(".panels > figure + figure");
    var pick = function () {
      each(panels, function (panel, k) {
        panel.hidden = k !== Number(choice.value);
      });
    };
    choice.addEventListener("change", pick);
    choice.closest(".choice").hidden = false;
    pick();
  }
})();
