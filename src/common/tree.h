/* tree.h - who hands on to whom: the binomial tree over members 0 .. size - 1,
 * with any of them as root. Pure.
 *
 * Number the members from the root on, round the ring: v = 0 .. size - 1. The
 * parent of v is v without its lowest bit; so a child is v plus a bit lower than
 * its own lowest. The subtree of a child v + 2^k are the 2^k members from it on,
 * as far as there are so many. The tree is ceil(log2 size) edges deep, and no
 * member has more children.
 */
#ifndef COH_COMMON_TREE_H
#define COH_COMMON_TREE_H

typedef struct coh_tree {
    int size, root; /* 0 <= root < size */
} coh_tree;

/* The member that `member` hangs from; -1 for the root. */
int coh_tree_parent(coh_tree self, int member);

/* How many hang from it, and number k of them, the smallest subtree first. */
int coh_tree_children(coh_tree self, int member);
int coh_tree_child(coh_tree self, int member, int k);

/* The most children that a member of such a tree has: ceil(log2 size). */
int coh_tree_depth(int size);

#endif
