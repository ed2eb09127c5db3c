/* Runs the search on pages that are read as files, where browsers refuse workers: a
   worker's script runs in a hidden frame instead. Its name tells Zensical that it need
   not load a shim from the network. */
(() => {
  if (location.protocol !== "file:") return;
  window.Worker = class {
    constructor(url) {
      this.onmessage = null;
      this.onerror = null;
      this.early = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.addEventListener("load", () => this.start(url), { once: true });
      document.body.append(this.frame);
    }
    start(url) {
      const inner = this.frame.contentWindow;
      inner.postMessage = (message) => {
        const data = structuredClone(message);
        setTimeout(() => this.onmessage && this.onmessage({ data }));
      };
      const script = inner.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      script.onerror = (event) => this.onerror && this.onerror(event);
      script.onload = () => {
        const messages = this.early;
        this.early = null;
        messages.forEach((data) => this.postMessage(data));
      };
      inner.document.body.append(script);
    }
    postMessage(message) {
      // A worker gets a copy, which it may change.
      const data = structuredClone(message);
      if (this.early) this.early.push(data);
      else setTimeout(() => this.frame.contentWindow?.onmessage({ data }));
    }
    terminate() {
      this.onmessage = null;
      this.frame.remove();
    }
  };
})();
