package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"os"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/cmaes"
	"github.com/c-bata/goptuna/tpe"
)

type P struct {
	Name    string        `json:"name"`
	Type    string        `json:"type"`
	Low     float64       `json:"low"`
	High    float64       `json:"high"`
	Step    float64       `json:"step"`
	Log     bool          `json:"log"`
	Choices []interface{} `json:"choices"`
}
type Msg struct {
	Op    string                 `json:"op"`
	Space []P                    `json:"space"`
	Facts map[string]interface{} `json:"facts"`
	Seed  int64                  `json:"seed"`
	Obs   map[string]interface{} `json:"obs"`
}

func main() {
	kind := "tpe"
	if len(os.Args) > 1 {
		kind = os.Args[1]
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var sp []P
	var facts map[string]interface{}
	ask := make(chan map[string]interface{})
	tell := make(chan [2]float64)
	var n int
	var worst float64
	say := func(v interface{}) { b, _ := json.Marshal(v); fmt.Println(string(b)) }
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		var m Msg
		if err := json.Unmarshal(line, &m); err != nil {
			say(map[string]string{"error": err.Error()})
			continue
		}
		switch m.Op {
		case "init":
			sp, facts, n, worst = m.Space, m.Facts, 0, 0
			capGB := math.Floor(facts["host_budget_gb"].(float64) / facts["tp"].(float64))
			for i := range sp {
				if sp[i].Name == "hicache_size" {
					sp[i].High = math.Min(sp[i].High, capGB)
				}
			}
			opts := []goptuna.StudyOption{
				goptuna.StudyOptionDirection(goptuna.StudyDirectionMaximize), goptuna.StudyOptionIgnoreError(true),
				goptuna.StudyOptionLogger(&goptuna.StdLogger{Logger: log.New(io.Discard, "", 0), Level: goptuna.LoggerLevelError}),
			}
			switch kind {
			case "tpe":
				opts = append(opts, goptuna.StudyOptionSampler(tpe.NewSampler(tpe.SamplerOptionSeed(m.Seed+1), tpe.SamplerOptionNumberOfStartupTrials(8))))
			case "cmaes":
				opts = append(opts, goptuna.StudyOptionSampler(goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(m.Seed+1))), goptuna.StudyOptionRelativeSampler(cmaes.NewSampler(cmaes.SamplerOptionSeed(m.Seed+1), cmaes.SamplerOptionNStartupTrials(4))))
			default:
				opts = append(opts, goptuna.StudyOptionSampler(goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(m.Seed+1))))
			}
			st, err := goptuna.CreateStudy("s", opts...)
			if err != nil {
				panic(err)
			}
			ask = make(chan map[string]interface{})
			tell = make(chan [2]float64)
			a, t, space := ask, tell, sp
			go st.Optimize(func(tr goptuna.Trial) (float64, error) {
				c := map[string]interface{}{}
				for _, p := range space {
					switch {
					case p.Type == "cat" && len(p.Choices) == 1: // v0.9.0 hands single-valued dimensions to CMA-ES
						c[p.Name] = p.Choices[0]
					case p.Type == "cat" && kind == "cmaes": // v0.9.0 panics on categoricals with a relative sampler
						k, _ := tr.SuggestInt(p.Name, 0, len(p.Choices)-1)
						c[p.Name] = p.Choices[int(math.Min(math.Max(float64(k), 0), float64(len(p.Choices)-1)))]
					case p.Type == "cat":
						names := make([]string, len(p.Choices))
						for i := range names {
							names[i] = fmt.Sprint(i)
						}
						s, _ := tr.SuggestCategorical(p.Name, names)
						var k int
						fmt.Sscan(s, &k)
						c[p.Name] = p.Choices[k]
					case p.Type == "cat_ord":
						k, _ := tr.SuggestInt(p.Name, 0, len(p.Choices)-1)
						if k < 0 {
							k = 0
						}
						if k >= len(p.Choices) {
							k = len(p.Choices) - 1
						}
						c[p.Name] = p.Choices[k]
					case p.Type == "int" && p.Log:
						v, _ := tr.SuggestLogFloat(p.Name, p.Low, p.High)
						c[p.Name] = math.Round(v)
					case p.Type == "int":
						v, _ := tr.SuggestInt(p.Name, int(p.Low), int(p.High))
						c[p.Name] = math.Min(math.Max(float64(v), p.Low), p.High)
					default:
						v, _ := tr.SuggestDiscreteFloat(p.Name, p.Low, p.High, p.Step)
						c[p.Name] = v
					}
				}
				a <- c
				r := <-t
				if r[1] < 0 {
					return 0, fmt.Errorf("stop")
				}
				return r[0], nil
			}, 1000)
			say(map[string]interface{}{"ok": true})
		case "suggest":
			n++
			say(map[string]interface{}{"config": <-ask})
		case "observe":
			if m.Obs["status"] == "ok" {
				v := m.Obs["value"].(float64)
				if worst == 0 || v < worst {
					worst = v
				}
				tell <- [2]float64{v, 1}
			} else {
				tell <- [2]float64{worst * 0.8, 1}
			}
			say(map[string]interface{}{"ok": true})
		case "recommend":
			say(map[string]interface{}{"config": nil})
		case "exit":
			say(map[string]interface{}{"ok": true})
			return
		}
	}
}
