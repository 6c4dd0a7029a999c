package web

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"sgtune/trial"
)

// serverLogName is the file of a server's log in a trial's folder; secrets were masked when it was written.
const serverLogName = "server.log"

// fileLine is a file of a trial's evidence.
type fileLine struct {
	Name, Link string
	Size       int64
}

// filesShown bounds the list of a trial's files.
const filesShown = 40

// evidence opens the folder of all evidence.
func (h *Handler) evidence() (*os.Root, error) {
	if h.opts.Evidence == "" {
		return nil, fs.ErrNotExist
	}
	return os.OpenRoot(h.opts.Evidence)
}

// openFile opens a file of a trial's evidence. The folder is a root: no name in a request or a row, and no
// link on the disk, leads out of it.
func (h *Handler) openFile(study string, t *trial.Trial, name string) (*os.File, fs.FileInfo, error) {
	if t.Dir == "" || name == "" || strings.HasPrefix(name, ".") || path.Base(name) != name || len(name) > longestValue {
		return nil, nil, errNoFile
	}
	root, err := h.evidence()
	if err != nil {
		return nil, nil, missing(err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	f, err := root.Open(path.Join(study, t.Dir, name))
	if err != nil {
		return nil, nil, missing(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// missing turns what the file system says of a name that is not there, or leads out of the folder, into errNoFile.
func missing(err error) error {
	var p *fs.PathError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &p) && !errors.Is(err, fs.ErrPermission) {
		return errNoFile
	}
	return fmt.Errorf("open a file of the evidence: %w", err)
}

// filesOf lists the files of a trial's evidence; what cannot be read is no file.
func (h *Handler) filesOf(study string, t *trial.Trial) []fileLine {
	root, err := h.evidence()
	if err != nil || t.Dir == "" {
		return nil
	}
	defer func() { _ = root.Close() }() // nothing was written
	entries, err := fs.ReadDir(root.FS(), path.Join(study, t.Dir))
	if err != nil {
		return nil
	}
	var out []fileLine
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") || len(out) == filesShown {
			continue
		}
		out = append(out, fileLine{Name: e.Name(), Link: fileLink(study, t.Number, e.Name()), Size: info.Size()})
	}
	return out
}

func fileLink(study string, number int, name string) string {
	return "/studies/" + url.PathEscape(study) + "/trials/" + strconv.Itoa(number) + "/files/" + url.PathEscape(name)
}

// file sends a file of a trial's evidence, or the bytes from= to= of it, as plain text; a browser may ask for
// ranges. It is never read whole.
func (h *Handler) file(w http.ResponseWriter, r *http.Request) {
	summary, t, err := h.trialOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	name, err := url.PathUnescape(chi.URLParam(r, "file"))
	if err != nil {
		name = ""
	}
	f, info, err := h.openFile(summary.Name, t, name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer func() { _ = f.Close() }() // nothing was written
	from, to, part, err := bounds(r.URL.Query(), info.Size())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	shown := fmt.Sprintf("%s-%d-%s", summary.Name, t.Number, name)
	if part {
		shown = fmt.Sprintf("%s-%d-%d-%d-%s", summary.Name, t.Number, from, to, name)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.URL.Query().Get("download") != "" {
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", shown))
	}
	http.ServeContent(patient{w}, r, "", info.ModTime(), io.NewSectionReader(f, from, to-from))
}

// bounds are the bytes of a file that a query asks for.
func bounds(query url.Values, size int64) (from, to int64, part bool, err error) {
	to = size
	for name, at := range map[string]*int64{"from": &from, "to": &to} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			return 0, 0, false, misasked{"from and to are bytes of the file, counted from 0."}
		}
		*at, part = min(v, size), true
	}
	if from > to {
		return 0, 0, false, misasked{"from is behind to."}
	}
	return from, to, part, nil
}

// patience is how long a reader of a long file may take for each piece of it.
const patience = 30 * time.Second

// patient moves the deadline of a response with each piece, so that a long file may take its time and a reader
// that never reads may not.
type patient struct{ http.ResponseWriter }

// Write implements io.Writer.
func (p patient) Write(b []byte) (int, error) {
	if err := http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.ResponseWriter.Write(b)
}
