// Keeps what the page is made of, so that it opens where there is no network: what there is on one
// comes first. The compiler of P4, which is large, is kept once it was needed.

const KEPT = "closlab";
const FILES = ["FILES"];

addEventListener("install", (event) => event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(FILES))));
addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  const answered = async () => {
    const kept = await caches.open(KEPT);
    try {
      const answer = await fetch(request);
      if (answer.ok) await kept.put(request, answer.clone());
      return answer;
    } catch (error) {
      const known = await kept.match(request);
      if (known) return known;
      throw error;
    }
  };
  event.respondWith(answered());
});
