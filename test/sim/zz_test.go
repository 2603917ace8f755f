package sim_test
import ("testing";"path/filepath";"github.com/moorage-dev/moorage/test/sim")
func TestZZ(t *testing.T){
 files,_:=filepath.Glob("testdata/past/*.txt")
 for _,f:=range files{
  p:=readPast(t,f)
  r:=sim.Replay(p.config,p.actions,nil)
  missing:=p.required; all:=r.All; bad:=0; var list []string
  for len(missing)>0 { ok:=false
   for i,a:=range all { if a==missing[0]{ all=all[i+1:]; ok=true; break } }
   if !ok { bad++; list=append(list,missing[0].String()) }
   missing=missing[1:] }
  t.Logf("%s: %d of %d missing, broken %v",filepath.Base(f),bad,len(p.required),r.Broken)
  for _,l:=range list{ t.Log("      ",l)}
 }
}
