package browser_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// call sends a command of the browser's protocol to the tab.
func call[P, R any](tb *tab, command cdp.Command[P, R], params P) R {
	tb.t.Helper()
	ctx, stop := context.WithTimeout(tb.ctx, limit)
	defer stop()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		tb.t.Fatal(err)
	}
	return r
}

// download does what starts a download and gives the file's name and content.
func (tb *tab) download(start func()) (name string, content []byte) {
	tb.t.Helper()
	dir, err := os.MkdirTemp("", "sgtune-download-")
	if err != nil {
		tb.t.Fatal(err)
	}
	tb.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ctx, stop := context.WithTimeout(tb.ctx, limit)
	defer stop()
	_, err = chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(tb.ctx).BrowserContextID, DownloadPath: dir,
	})
	if err != nil {
		tb.t.Fatal(err)
	}
	start()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 || strings.HasSuffix(files[0], ".crdownload") {
			continue
		}
		if content, err = os.ReadFile(files[0]); err == nil && len(content) > 0 {
			return filepath.Base(files[0]), content
		}
	}
	tb.t.Fatalf("no file came within %s", limit)
	return "", nil
}
