// Runs before anything is drawn: the choice of light or dark that was kept.
try {
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* a browser that keeps nothing follows the system */ }
