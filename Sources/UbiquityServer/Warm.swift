// warm
