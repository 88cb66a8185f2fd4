"use strict";
(function () {
  // Interpolates between the atoms. The frames are computed in Python and interpolated linearly.
  // Without this script the page shows the reconstruction of the target.
  var source = document.getElementById("frames");
  if (!source) { return; }
  var data = JSON.parse(source.textContent);
  var slider = document.getElementById("along");
  var readout = document.getElementById("readout");
  var ellipses = document.querySelectorAll("#moving g:nth-of-type(1) > *");
  var marks = document.querySelectorAll("#moving g:nth-of-type(2) > *");

  function mix(a, b, t) { return a + (b - a) * t; }

  function percent(x) { return Math.round(100 * x) + "\u00a0%"; }

  function place(value) {
    var left = Math.min(Math.floor(value), data.path.length - 2);
    var t = value - left;
    var a = data.frames[data.path[left]], b = data.frames[data.path[left + 1]];
    var near = t < 0.5 ? a : b;
    for (var k = 0; k < ellipses.length; k += 1) {
      var n = a.c[k].map(function (x, i) { return mix(x, b.c[k][i], t); });
      ellipses[k].setAttribute("transform", "matrix(" +
        [n[0], n[1], n[1], n[2], n[3], n[4]].map(function (x) { return x.toFixed(2); }).join(" ") + ")");
      ellipses[k].setAttribute("class", "e k" + near.k[k] % 10 + (near.s[k] ? " soft" : ""));
      marks[k].setAttribute("x", n[3].toFixed(1));
      marks[k].setAttribute("y", n[4].toFixed(1));
      marks[k].setAttribute("class", "k" + near.k[k] % 10);
      marks[k].setAttribute("href", "#m" + near.m[k]);
    }
    var parts = a.l.map(function (x, i) { return percent(mix(x, b.l[i], t)) + " " + data.atoms[i]; });
    var stop = data.stops.find(function (s) { return Math.abs(s.at - value) < 1e-6; });
    var words = (stop ? stop.name + ": " : "") + parts.join(" + ");
    readout.textContent = words;
    slider.setAttribute("aria-valuetext", words);
  }

  slider.addEventListener("input", function () { place(Number(slider.value)); });
  document.querySelectorAll(".stops button").forEach(function (button) {
    button.addEventListener("click", function () {
      slider.value = button.value;
      place(Number(slider.value));
    });
  });
  document.querySelectorAll("[data-needs-script]").forEach(function (part) { part.hidden = false; });
  place(Number(slider.value));
})();
