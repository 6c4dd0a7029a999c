package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// kinds are the types of embedded files by the end of their names; nothing else is served.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// staticHash is the name of a state of all embedded files: their addresses change when one of them does, so
// that browsers may keep them for good.
func staticHash(files fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the embedded files: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// hashed serves an embedded file by its address with the hash; one that is embedded compressed (NAME.gz) goes out as it is to whoever
// takes that.
func (h *Handler) hashed(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "*")
	kind := kinds[path.Ext(name)]
	if chi.URLParam(r, "hash") != h.hash || kind == "" || !fs.ValidPath(name) {
		h.fail(w, r, errNoPage)
		return
	}
	content, err := files.ReadFile("static/" + name)
	if err != nil {
		var packed []byte
		if packed, err = files.ReadFile("static/" + name + ".gz"); err != nil {
			h.fail(w, r, errNoPage)
			return
		}
		content = packed
		w.Header().Add("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
		} else if content, err = unpack(packed); err != nil {
			h.fail(w, r, fmt.Errorf("unpack %s: %w", name, err))
			return
		}
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
