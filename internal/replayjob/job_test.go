package replayjob_test

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/internal/replayjob"
)

// filled sets every field that can be sent to something.
func filled(v reflect.Value, left ...string) {
	for i := range v.NumField() {
		f := v.Field(i)
		if slices.Contains(left, v.Type().Field(i).Name) {
			continue
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(1_000_001 * (i + 1)))
		case reflect.Uint64:
			f.SetUint(uint64(i + 1))
		case reflect.Float64:
			f.SetFloat(0.5 + float64(i))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Struct:
			filled(f)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			filled(f.Elem())
		}
	}
}

// TestLoadCarriesEveryOption fails when benchmark.Options gets a field that Load does not know.
func TestLoadCarriesEveryOption(t *testing.T) {
	t.Parallel()
	var want benchmark.Options
	left := []string{"Clock", "Prune", "OnWindow", "CPUShare", "WarmupFeed"}
	filled(reflect.ValueOf(&want).Elem(), left...)
	v := reflect.ValueOf(want)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(left, name) {
			t.Errorf("Options.%s was not filled: teach this test its kind", name)
		}
	}
	text, err := json.Marshal(replayjob.LoadOf(want))
	if err != nil {
		t.Fatal(err)
	}
	var load replayjob.Load
	if err := json.Unmarshal(text, &load); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, load.Options()); d != "" {
		t.Errorf("lost on the way (add it to Load, and raise Protocol): %s", d)
	}
}

// TestWhatIsSentSurvivesJSON fails when a type of package benchmark gets a field that JSON leaves out.
func TestWhatIsSentSurvivesJSON(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var walk func(where string, typ reflect.Type)
	walk = func(where string, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		switch {
		case typ.Kind() == reflect.Func || typ.Kind() == reflect.Chan || typ.Kind() == reflect.Interface:
			t.Errorf("%s is a %v, which cannot be sent", where, typ.Kind())
		case typ.Kind() != reflect.Struct || seen[typ] || typ == reflect.TypeFor[time.Time]():
		default:
			seen[typ] = true
			for i := range typ.NumField() {
				f := typ.Field(i)
				if !f.IsExported() || f.Tag.Get("json") == "-" {
					t.Errorf("%s.%s would be lost", where, f.Name)
				}
				walk(where+"."+f.Name, f.Type)
			}
		}
	}
	walk("Event", reflect.TypeFor[replayjob.Event]())
	walk("Control", reflect.TypeFor[replayjob.Control]())
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{`"10s"`: 10 * time.Second, `"1m30.000000001s"`: 90*time.Second + 1, `"0s"`: 0} {
		var d replayjob.Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(d), err)
		}
		if back, err := json.Marshal(d); err != nil || string(back) != text {
			t.Errorf("%s became %s, %v", text, back, err)
		}
	}
	var d replayjob.Duration
	if err := json.Unmarshal([]byte(`"10"`), &d); err == nil || !strings.Contains(err.Error(), "unit") {
		t.Errorf("a duration without a unit: %v", err)
	}
}

// TestFirstLines: what is no job of this protocol gets one clear error.
func TestFirstLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, line, kind, text string }{
		{"not JSON", "hello", replayjob.FailedProtocol, "is no job"},
		{"no job", `{"control":"stop"}`, replayjob.FailedProtocol, "is no job"},
		{"older", `{"job":{"protocol":0}}`, replayjob.FailedProtocol, "speaks protocol 0, this agent 2"},
		{"newer, of any shape", `{"job":{"protocol":7,"load":[]},"more":1}`, replayjob.FailedProtocol, "speaks protocol 7"},
		{"unknown key", `{"job":{"protocol":2,"lod":{}}}`, replayjob.FailedJob, `unknown field "lod"`},
		{"no unit", `{"job":{"protocol":2,"load":{"cap":"10"}}}`, replayjob.FailedJob, "with its unit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, caller := io.Pipe()
			defer caller.Close()
			out, agent := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- replayjob.Serve(t.Context(), in, agent, "v1")
				_ = agent.Close()
			}()
			go func() { _, _ = io.WriteString(caller, "\n"+c.line+"\n") }()
			var last replayjob.Event
			lines := json.NewDecoder(out)
			for {
				var e replayjob.Event
				if lines.Decode(&e) != nil {
					break
				}
				last = e
			}
			var f *replayjob.Failure
			if err := <-ended; !errors.As(err, &f) || last.Error == nil || *last.Error != *f {
				t.Fatalf("ended with %v, told %+v", err, last.Error)
			}
			if f.Kind != c.kind || !strings.Contains(f.Text, c.text) {
				t.Errorf("%+v; want %s and %q", f, c.kind, c.text)
			}
		})
	}
}
