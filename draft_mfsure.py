import numpy as np, math, time, sys
from numba import njit
LOG2=math.log(2.0)
@njit(cache=True)
def mills(z):
    # value, slope of log(exp(z^2/2) Phi(z))
    if z>=0:
        q=0.5*math.erfc(z/math.sqrt(2.0)); p=1-q
        return 0.5*z*z+math.log(p), z+math.exp(-0.5*z*z)/math.sqrt(2*math.pi)/p
    x=-z/math.sqrt(2.0)
    if x<5:
        e=math.exp(x*x)*math.erfc(x)
    else:
        f=x
        for k in range(30,0,-1): f=x+k/2/f
        e=1/(math.sqrt(math.pi)*f)
    return math.log(0.5*e), z+math.sqrt(2/math.pi)/e
@njit(cache=True)
def cell(theta,n,s,sig,rho,sign):
    if n==0: return 0.0,0.0
    sp=sig*math.sqrt(n+rho)
    v,d=mills(sign*(n*theta-s)/sp)
    return v+LOG2-0.5*math.log1p(n/rho), d*sign*n/sp
@njit(cache=True)
def pooled(mu,n,s,sig,zeta,sign):
    M=n.shape[0]; tot=0.0; sl=0.0
    for m in range(M):
        v,d=cell(mu-sign*zeta[m],n[m],s[m],sig[m],3.0,sign)
        if m<M-1:
            d=d/(1+math.exp(-v)); v=(max(v,0.0)+math.log1p(math.exp(-abs(v))))-LOG2
        tot+=v; sl+=d
    return tot,sl
@njit(cache=True)
def lam(ni,si,na,sa,sig,zeta,eps):
    lo=1e300; hi=-1e300
    for m in range(len(ni)):
        if ni[m]>0:
            x=si[m]/ni[m]; lo=min(lo,x-zeta[m]); hi=max(hi,x+zeta[m])
        if na[m]>0:
            x=sa[m]/na[m]-eps; lo=min(lo,x-zeta[m]); hi=max(hi,x+zeta[m])
    st=hi-lo+1e-9
    while pooled(lo,ni,si,sig,zeta,-1.0)[1]+pooled(lo+eps,na,sa,sig,zeta,1.0)[1]>0: lo-=st; st*=2
    st=hi-lo+1e-9
    while pooled(hi,ni,si,sig,zeta,-1.0)[1]+pooled(hi+eps,na,sa,sig,zeta,1.0)[1]<0: hi+=st; st*=2
    for _ in range(40):
        mid=.5*(lo+hi)
        if pooled(mid,ni,si,sig,zeta,-1.0)[1]+pooled(mid+eps,na,sa,sig,zeta,1.0)[1]>0: hi=mid
        else: lo=mid
    mid=.5*(lo+hi)
    return pooled(mid,ni,si,sig,zeta,-1.0)[0]+pooled(mid+eps,na,sa,sig,zeta,1.0)[0]
@njit(cache=True)
def centre(n,s,sig,zeta):
    M=len(n); lo=1e300; hi=-1e300
    for m in range(M):
        if n[m]>0:
            x=s[m]/n[m]; lo=min(lo,x-zeta[m]); hi=max(hi,x+zeta[m])
    if lo>hi: return -1e300
    for _ in range(40):
        mid=.5*(lo+hi); b=0.0
        for m in range(M):
            if n[m]>0: b+=cell(mid-zeta[m],n[m],s[m],sig[m],1.0,1.0)[0]-cell(mid+zeta[m],n[m],s[m],sig[m],1.0,-1.0)[0]
        if b>0: hi=mid
        else: lo=mid
    return .5*(lo+hi)
@njit(cache=True)
def glr(ni,si,na,sa,sig,zeta,eps):
    # min over eta; returns f, eta, leader part
    M=len(ni)
    lo=1e300; hi=-1e300
    for m in range(M):
        if ni[m]>0: hi=max(hi,si[m]/ni[m]-zeta[m])
        if na[m]>0: lo=min(lo,sa[m]/na[m]+zeta[m]-eps)
    if hi<=lo: return 0.0, 0.0, 0.0
    a=lo; b=hi
    for _ in range(50):
        mid=.5*(a+b); d=0.0
        for m in range(M):
            if ni[m]>0:
                x=si[m]/ni[m]-zeta[m]-mid
                if x>0: d-=ni[m]*x/sig[m]**2
            if na[m]>0:
                x=mid+eps-sa[m]/na[m]-zeta[m]
                if x>0: d+=na[m]*x/sig[m]**2
        if d>0: b=mid
        else: a=mid
    eta=.5*(a+b); fl=0.0; fc=0.0
    for m in range(M):
        if ni[m]>0:
            x=si[m]/ni[m]-zeta[m]-eta
            if x>0: fl+=ni[m]*x*x/(2*sig[m]**2)
        if na[m]>0:
            x=eta+eps-sa[m]/na[m]-zeta[m]
            if x>0: fc+=na[m]*x*x/(2*sig[m]**2)
    return fl+fc, eta, (fl/(fl+fc) if fl+fc>0 else 0.0)
@njit(cache=True)
def fidelity(n,s,sig,zeta,lam_,eta,eps,leader):
    M=len(n); best=-1.0; at=M-1
    lim=1e300 if leader else -1e300
    for m in range(M):
        if n[m]>0:
            sd=sig[m]/math.sqrt(n[m]); x=s[m]/n[m]
            if leader: lim=min(lim,x+zeta[m]+3*sd)
            else: lim=max(lim,x-zeta[m]-3*sd)
    for m in range(M):
        if leader:
            e=lim+zeta[m]
            if n[m]>0: e=min(e,s[m]/n[m]+3*sig[m]/math.sqrt(n[m]))
            dev=e-zeta[m]-eta
        else:
            e=lim-zeta[m]
            if n[m]>0: e=max(e,s[m]/n[m]-3*sig[m]/math.sqrt(n[m]))
            dev=eta+eps-zeta[m]-e
        if dev<0: dev=0.0
        v=dev*dev/(2*sig[m]**2*lam_[m])
        if v>=best: best=v; at=m
    if best<=0: at=M-1
    return at
@njit(cache=True)
def run(means,sig,zeta,cost,delta,eps,seed,det,maxplays):
    np.random.seed(seed)
    M,K=means.shape
    n=np.zeros((K,M)); s=np.zeros((K,M)); v=np.zeros(K)
    f=np.zeros(K); eta=np.zeros(K); sh=np.zeros(K); L=np.zeros(K); fresh=np.zeros(K)
    spent=0.0; plays=0
    last=-1
    thr=math.log((K-1)/delta)
    i=-1
    for k in range(K):
        x=means[0,k]+sig[0]*np.random.randn(); n[k,0]+=1; s[k,0]+=x; spent+=cost[0]; plays+=1
        v[k]=centre(n[k],s[k],sig,zeta)
    while plays<maxplays:
        j=0
        for k in range(1,K):
            if v[k]>v[j]: j=k
        full = (j!=i) or (last==i)
        i=j
        c=-1; bc=1e300
        ok=True
        for a in range(K):
            if a==i: continue
            if full or a==last:
                f[a],eta[a],sh[a]=glr(n[i],s[i],n[a],s[a],sig,zeta,eps)
                L[a]=-1e300; fresh[a]=0
            p=0.0
            for m in range(M): p+=n[a,m]
            w=f[a]+math.log(p)
            if w<bc or (w==bc and v[a]>v[c]): bc=w; c=a
        # stop test: the challenger first
        if f[c]>0:
            for a in range(K):
                if a==i: continue
                if f[a] < thr-5: ok=False; break   # cheap: mixture evidence is below GLR
            if ok:
                for a in range(K):
                    if a==i: continue
                    if fresh[a]==0: L[a]=lam(n[i],s[i],n[a],s[a],sig,zeta,eps); fresh[a]=1
                    if L[a]<thr: ok=False; break
            if ok: return spent,i,plays
        e=eta[c]
        if f[c]<=0: e=.5*(v[i]+v[c])-eps/2
        mi=fidelity(n[i],s[i],sig,zeta,cost,e,eps,True); mc=fidelity(n[c],s[c],sig,zeta,cost,e,eps,False)
        if f[c]>0:
            a_=sh[c]/cost[mi]; b_=(1-sh[c])/cost[mc]
            p=a_/(a_+b_)
            if det==1: u=(plays*0.6180339887498949)%1.0
            else: u=np.random.rand()
            lead=u<p
        else:
            x=0.0;y=0.0
            for m in range(M): x+=n[i,m]*cost[m]; y+=n[c,m]*cost[m]
            lead=x<y
        k,m=(i,mi) if lead else (c,mc)
        x=means[m,k]+sig[m]*np.random.randn(); n[k,m]+=1; s[k,m]+=x; spent+=cost[m]; plays+=1
        v[k]=centre(n[k],s[k],sig,zeta); last=k
    return spent,-1,plays
INST={
 "5x2":(np.array([[.4,.4,.4,.4,.5],[.5,.5,.5,.5,.6]]),[.1,.1],[.1,0],[.5,5]),
 "mu3":(np.array([[.41,.45,.47,.48,.5],[.35,.37,.38,.36,.35],[.51,.56,.64,.62,.61],[.41,.39,.4,.42,.43]]).T.copy(),[.1]*5,[.1,.08,.04,.02,0],[.1,.125,.25,.5,1]),
}
if __name__=="__main__":
    for name,(mu,sig,z,lam_) in INST.items():
        best=int(mu[-1].argmax())
        for det in (0,1):
            t=time.time()
            R=[run(mu,np.array(sig,float),np.array(z,float),np.array(lam_,float),.1,0.0,r,det,10**7) for r in range(300)]
            c=np.array([r[0] for r in R]); w=np.mean([r[1]!=best for r in R]); 
            print(name,"det" if det else "rnd","cost %.1f ± %.1f"%(c.mean(),2*c.std()/len(c)**.5),"max",c.max(),"wrong",w,"us/play %.1f"%((time.time()-t)/sum(r[2] for r in R)*1e6))
